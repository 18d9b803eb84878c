"""Everything of the contract's list of bad input, through the whole import: refused with nothing written, or taken with nothing lost.

SPEC 10 and the limits of docs/files.md; what each reader does with such a text has its own tests.
"""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from memory.mirror.importing import import_tree
from memory.mirror.reading.tree import SourceTree, UnsafeTree, read_folder, read_zip
from memory.models import AgentMemory, Decision, DecisionInboxEntry, ImportedRecord, LedgerEvent
from tests.conftest import NOW, Team
from tests.memory.mirror.trees import SQUAD, as_zip

pytestmark = pytest.mark.django_db

MB = 1024 * 1024
PEAK = 24 * MB
"""Far below the 60 MB that are offered, far above what a small tree needs."""


def with_link(link: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        entry = zipfile.ZipInfo(".squad/decisions.md")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, link)
    return stream.getvalue()


def twice() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(".squad/decisions.md", "one")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr(".squad/decisions.md", "two")
    return stream.getvalue()


def named(*names: str) -> bytes:
    return as_zip({**SQUAD, **dict.fromkeys(names, "x")}).getvalue()


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "bomb": (lambda: as_zip({".squad/decisions.md": bytes(60 * MB)}).getvalue(), "zip_ratio"),
    "many bombs": (
        lambda: as_zip({f".squad/decisions/inbox/{n}.md": bytes(3 * MB) for n in range(30)}).getvalue(),
        "total_size",
    ),
    "leaving": (lambda: named(".squad/../../etc/cron.d/x.md"), "name"),
    "absolute": (lambda: named("/etc/passwd"), "name"),
    "drive": (lambda: named("C:/x.md"), "name"),
    "twice": (twice, "duplicate_name"),
    "case": (lambda: named(".squad/DECISIONS.md"), "duplicate_name"),
    "normal form": (lambda: named(".squad/\u00e9.md", ".squad/e\u0301.md"), "duplicate_name"),
    "10,000 files": (lambda: named(*(f".squad/decisions/inbox/{n}.md" for n in range(10_000))), "entries"),
    "deep": (lambda: named(f".squad/{'a/' * 40}x.md"), "depth"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_unsafe_zip_is_refused_whole_and_nothing_is_written(team: Team, what: str) -> None:
    make, limit = REFUSED[what]
    data, events = make(), LedgerEvent.objects.count()
    tracemalloc.start()
    try:
        with pytest.raises(UnsafeTree) as refused:
            taken_in(team, read_zip(io.BytesIO(data)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert refused.value.limit == limit
    assert (LedgerEvent.objects.count(), ImportedRecord.objects.count()) == (events, 0)
    assert peak < PEAK


def taken_in(team: Team, tree: SourceTree) -> dict[str, str]:
    """Imports a tree; the files that were not read, with their reasons."""
    report = import_tree(project_id=team.project.pk, actor=team.owner, tree=tree, now=NOW)
    assert report.found == report.taken + report.skipped
    return {file.path: file.reason for file in report.unread}


def test_a_file_of_60_mb_is_reported_the_rest_comes_in_and_memory_stays_flat(
    team: Team, tmp_path: Path
) -> None:
    (tmp_path / ".squad/decisions/inbox").mkdir(parents=True)
    (tmp_path / ".squad/decisions.md").write_text(SQUAD[".squad/decisions.md"])
    with (tmp_path / ".squad/decisions/inbox/big.md").open("wb") as big:
        big.truncate(60 * MB)
    tracemalloc.start()
    try:
        unread = taken_in(team, read_folder(tmp_path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert unread == {".squad/decisions/inbox/big.md": "too_large"}
    assert Decision.objects.count() == 3
    assert peak < PEAK


def test_a_link_in_a_zip_is_reported_and_leads_nowhere(team: Team) -> None:
    unread = taken_in(team, read_zip(io.BytesIO(with_link("/etc/passwd"))))
    assert unread == {".squad/decisions.md": "symlink"}
    assert not Decision.objects.exists()


TEXTS: dict[str, bytes] = {
    "invalid UTF-8": b"Tides \xff\xfe\x80 repeat.",
    "NUL": b"Tides \x00 repeat.",
    "BOM": b"\xef\xbb\xbfTides repeat.",
    "mixed line ends": b"Tides\r\nrepeat\rafter\n18.6 years.",
    "broken YAML": b"---\nagent: [Bo\ntitle: 'x\n---\n\nTides repeat.",
    "two front matters": b"---\nagent: Bo\ntitle: Tides\n---\n---\nagent: Mallory\ntitle: Ebb\n---\n\nTides repeat.",
    "front matter in the middle": b"# Tides\n\nTides repeat.\n\n---\nagent: Mallory\nslug: ebb\ntype: scope\n---\n\nEbb.",
    "unclosed fence": b"# Tides\n\n```\n### 2026-01-01: no heading\n\nTides repeat.",
    "unclosed comment": b"# Tides\n\nTides repeat.\n<!-- agentweaver:record",
}


def words_of(data: bytes) -> list[str]:
    """The words any reader of the file would see."""
    return [word for word in ("Tides", "repeat", "18.6", "Ebb", "Mallory") if word.encode() in data]


@pytest.mark.parametrize("what", TEXTS)
def test_a_bad_text_in_the_inbox_is_one_entry_that_holds_every_word(team: Team, what: str) -> None:
    data = TEXTS[what]
    assert taken_in(team, read_zip(as_zip({".squad/decisions/inbox/bo-tides.md": data}))) == {}
    entry = DecisionInboxEntry.objects.get()
    written = f"{entry.agent.name}\n{entry.title}\n{entry.content}\n{entry.rationale}"
    assert (entry.status, entry.source_kind) == ("pending", "legacy")
    assert [word for word in words_of(data) if word not in written] == []
    assert "\x00" not in written


@pytest.mark.parametrize("what", TEXTS)
def test_a_bad_text_in_a_ledger_or_a_history_loses_no_word(team: Team, what: str) -> None:
    data = TEXTS[what]
    ledger = b"# Decisions\n\n### 2026-03-07: Before\n**By:** Ana\n\n" + data
    history = b"# Ana\n\n## Learnings\n\nBefore.\n\n" + data
    taken_in(team, read_zip(as_zip({".squad/decisions.md": ledger, ".squad/agents/Ana/history.md": history})))
    decisions = "\n".join(f"{row.title}\n{row.content}" for row in Decision.objects.all())
    memories = "\n".join(AgentMemory.objects.values_list("content", flat=True))
    for written in (decisions, memories):
        assert [word for word in words_of(data) if word not in written] == []
    assert set(Decision.objects.values_list("trust_state", flat=True)) == {"legacy"}
    assert set(AgentMemory.objects.values_list("trust_state", flat=True)) == {"legacy"}
