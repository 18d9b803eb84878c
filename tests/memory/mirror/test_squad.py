"""The whole tree (SPEC 8): any bytes are read, found is always taken plus skipped, our own export comes back."""

import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.mirror.marks import MarkedRecord, wrap
from memory.mirror.names import Names
from memory.mirror.reading import squad
from memory.mirror.reading.records import DecisionRecord, EntryRecord, MemoryRecord, Origin, SessionRecord
from memory.mirror.reading.report import FileCount, TreeReading
from memory.mirror.reading.sources import SOURCES
from memory.mirror.reading.squad import read_tree
from memory.mirror.reading.tree import UnsafeTree, read_zip
from memory.values import MAX_TEXT, clean_name, clean_slug, clean_tags, clean_title
from tests.memory.mirror.files import ROOT, ledger, reading, zipped

PATHS = (
    "decisions.md",
    "decisions/decisions.md",
    "decisions-archive.md",
    "decisions/one.md",
    "decisions/inbox/ana-x.md",
    "decisions/inbox/copilot-directive.md",
    "agents/ana/charter.md",
    "agents/ana/history.md",
    "agents/_alumni/bo/history.md",
    "identity/now.md",
    "notes.md",
)
PIECES = [
    "# Decisions",
    "## Active Decisions",
    "## Governance",
    "## 2026-01-01",
    "### 2026-01-02: Title",
    "### Title (Ana)",
    "# Decision: x",
    "## Context",
    "## Learnings",
    "### Part",
    "#",
    "**By:** Ana",
    "**Date:** 2026-02-30",
    "- **Status:** Done",
    "| **Author** | x |",
    "- bullet",
    "  - nested",
    "1. one",
    "📌 Team update",
    "text",
    "",
    "",
    "---",
    "```",
    "<!--",
    "-->",
    "> quote",
    "title: x",
    "<<<<<<< a",
    ">>>>>>> b",
    "\x00",
    "\ufeff# x",
    "a\rb",
    wrap(MarkedRecord("decision", 1, "# t\n", "why", {"agent": "ana", "title": "T"}), "## T"),
]
markdown = st.lists(st.sampled_from(PIECES), max_size=25).map("\n".join).map(str.encode)
contents = st.one_of(
    st.binary(max_size=200), markdown, st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace"))
)


def fits(record) -> None:
    """A record is one the ledger can hold: the database half needs no second check."""
    assert record.line >= 1
    assert len(record.content) <= MAX_TEXT
    assert "\x00" not in record.content
    record.content.encode("utf-8")
    assert clean_title(record.title, required=False) == record.title
    assert clean_tags(record.tags) == list(record.tags)
    if record.kind != "session":
        assert clean_name(record.agent) == record.agent
        assert record.content.strip()
    if record.kind == "entry":
        assert clean_slug(record.slug) == record.slug


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(st.sampled_from(PATHS), contents, max_size=5), st.sets(st.sampled_from(SOURCES)))
def test_any_bytes_are_read_and_what_is_found_is_taken_or_skipped(files, sources):
    report = reading({"decisions.md": "", **files}, sources)
    assert report.found == report.taken + len(report.skipped)
    assert {count.path for count in report.files} | {item.path for item in report.unread} == {
        f".squad/{name}" for name in {"decisions.md", *files}
    }
    assert {record.source for record in report.records} <= sources
    for record in report.records:
        fits(record)


@given(st.dictionaries(st.sampled_from(PATHS), contents, max_size=4))
def test_reading_twice_gives_the_same(files):
    assert reading({"decisions.md": "", **files}) == reading({"decisions.md": "", **files})


def test_a_report_that_does_not_add_up_cannot_be_made():
    report = ledger("### 2026-01-01: T\n**By:** Ana\n\nText.\n")
    (count,) = report.files
    for files in (
        (),
        (replace(count, found=2),),
        (replace(count, taken=0),),
        (FileCount("other.md", "ledger", 0, 0, 0),),
    ):
        with pytest.raises(ValueError, match=r"number|counts"):
            replace(report, files=files)
    assert isinstance(replace(report, files=report.files), TreeReading)


def test_a_source_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match="no such source: everything"):
        reading({"decisions.md": ""}, ("ledger", "everything"))


def test_a_file_with_too_many_lines_is_reported_and_the_rest_comes_in(monkeypatch):
    monkeypatch.setattr(squad, "MAX_LINES", 10)
    report = ledger("x\n" * 11, **{"agents/ana/charter.md": "# Ana\n"})
    assert [(item.path, item.reason) for item in report.unread] == [(".squad/decisions.md", "too_many_lines")]
    assert [record.kind for record in report.records] == ["charter"]


def test_a_tree_with_too_many_lines_is_refused(monkeypatch):
    monkeypatch.setattr(squad, "MAX_TOTAL_LINES", 10)
    with pytest.raises(UnsafeTree, match="lines"):
        ledger("x\n" * 11)


def test_records_of_our_own_export_come_back_byte_for_byte():
    text = "# Heading\r\n\r\n### 2026-01-01: Look-alike\n**By:** Eve\n\n---\n```\nnot closed\n"
    data = {
        "project": "p",
        "revision": 3,
        "agent": "Ana",
        "title": "A: b",
        "type": "scope",
        "tags": ["one", "cross-team"],
        "created": "2026-03-04T05:06:07Z",
    }
    decision = wrap(MarkedRecord("decision", 12, text, "Why\rnot", data), "## A: b\n**By:** Ana")
    report = ledger(f"# Decisions\n\n{decision}\n### 2026-05-05: By hand\n**By:** Bo\n\nAdded below.\n")
    exported, added = report.of(DecisionRecord)
    assert isinstance(exported, DecisionRecord)
    assert (exported.content, exported.rationale, exported.rationale_apart) == (text, "Why\rnot", True)
    assert (exported.agent, exported.title, exported.type, exported.tags) == (
        "Ana",
        "A: b",
        "scope",
        ("one", "cross-team"),
    )
    assert exported.created == datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    assert exported.origin == Origin("decision", 12, "p", 3, False)
    assert (added.title, added.line, added.origin) == ("By hand", 21, None)
    assert (report.found, report.notes) == (2, ())


def test_every_kind_of_exported_record_comes_back_where_it_was_written():
    memory = MarkedRecord("memory", 1, "- m", None, {"agent": "Ana", "type": "pattern", "importance": "high"})
    entry = MarkedRecord(
        "entry", 2, "e", "r", {"agent": "Ana", "slug": "ana--x", "title": "T", "type": "learning"}
    )
    session = MarkedRecord(
        "session", 3, "s", None, {"focus_area": "F", "active_issues": ["a", "b"], "session_id": "s1"}
    )
    files = {
        ".squad/agents/ana/history.md": "# Ana\n\n## Learnings\n\n" + wrap(memory),
        ".squad/decisions/inbox/ana--x.md": "---\nagent: Ana\nslug: ana--x\ntype: learning\ntitle: T\n---\n"
        + wrap(entry),
        ".squad/identity/now.md": "---\nfocus_area: F\n---\n" + wrap(session),
        ".agentweaver/context/patterns.md": "# Patterns\n" + wrap(memory),
    }
    report = read_tree(read_zip(zipped(files)))
    by_kind = {record.kind: record for record in report.records}
    assert isinstance(by_kind["memory"], MemoryRecord)
    assert isinstance(by_kind["entry"], EntryRecord)
    assert isinstance(by_kind["session"], SessionRecord)
    assert (by_kind["memory"].type, by_kind["memory"].importance, by_kind["memory"].content) == (
        "pattern",
        "high",
        "- m",
    )
    assert (by_kind["entry"].slug, by_kind["entry"].type, by_kind["entry"].rationale) == (
        "ana--x",
        "learning",
        "r",
    )
    assert (by_kind["session"].focus_area, by_kind["session"].active_issues) == ("F", ("a", "b"))
    reasons = [(item.path, item.reason) for item in report.skipped]
    assert (".agentweaver/context/patterns.md", "duplicate") in reasons or by_kind["memory"].path.startswith(
        ".agentweaver"
    )


def test_an_exported_text_that_was_edited_by_hand_is_taken_as_it_now_stands():
    text = wrap(MarkedRecord("decision", 12, "Old words", None, {"agent": "Ana", "title": "T"})).replace(
        "Old", "New"
    )
    report = ledger(text)
    (record,) = report.of(DecisionRecord)
    assert (record.content, record.origin) == ("New words", Origin("decision", 12, "", None, True))
    assert [note.code for note in report.notes] == ["edited_by_hand"]


@pytest.mark.parametrize(
    "data",
    [{}, {"agent": 1, "tags": "x", "title": ["a"], "type": "owner", "slug": "../x", "created": "soon"}],
)
def test_marks_with_odd_values_give_a_record_that_fits(data):
    for kind in ("decision", "memory", "entry", "session"):
        report = ledger(wrap(MarkedRecord(kind, 1, "text", None, data)))
        for record in report.records:
            fits(record)
        assert report.taken == 1


def test_near_names_are_one_agent():
    names = Names(["Ana"])
    assert [names.known(name) for name in ("ana", " ANA ", "Anna")] == ["Ana", "Ana", None]


LARGE = """
import resource, sys
from memory.mirror.reading.squad import read_tree
from memory.mirror.reading.tree import read_folder
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
report = read_tree(read_folder(sys.argv[1]))
used = resource.getrusage(resource.RUSAGE_SELF)
print(report.taken, round(used.ru_utime + used.ru_stime), (used.ru_maxrss - before) // 1024)
"""


def test_a_large_ledger_is_read_quickly_and_in_flat_memory(tmp_path):
    """1.5 MB with 3,000 headings, in a process of its own. The bounds are wide: the machine may be busy."""
    record = "### 2026-01-01: Title {0}\n**By:** Ana\n\n" + "Some words of text.\n" * 22 + "\n- a\n- b\n\n"
    text = "# Decisions\n\n" + "".join(record.format(number) for number in range(3000))
    assert len(text) > 1_400_000
    (tmp_path / ".squad").mkdir()
    (tmp_path / ".squad/decisions.md").write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", LARGE, tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr == ""
    taken, seconds, mebibytes = map(int, done.stdout.split())
    assert taken == 3000
    assert seconds < 20
    assert mebibytes < 150


@pytest.mark.parametrize(
    "line",
    [
        "# " + " " * 100_000 + "x\n",
        "# a" + "-" * 100_000 + "b\n",
        "# a" + "-" * 100_000 + "b 2026-01-01\n",
        "# " + "(" * 50_000 + "2026-01-01" + ")" * 50_000 + "\n",
        "# " + "#" * 100_000 + " x\n",
        "# x\n**By:** a" + " " * 100_000 + "b\n",
        "# x\n**" + " " * 100_000 + "b:**\n",
        "# x\n" + "*" * 100_000 + "b:**\n",
        "# x\n- " + "- " * 50_000 + "\n",
        "# x\n" + "a | " * 50_000 + "\n|---|\n",
        "* a\n",
        "> " * 50 + "x\n",
        "# x\n",
        "### 2026-01-01: x\n",
        "**By:** " * 20 + "\n",
        "|" * 200 + "\n",
        "(" * 200 + "\n",
        "- " * 100 + "\n",
    ],
)
def test_hostile_repetition_is_read_in_linear_time(line):
    size = 200_000 // len(line)
    started = time.process_time()
    for name in ("decisions.md", "decisions/inbox/ana-x.md", "agents/ana/history.md"):
        reading({"decisions.md": "", name: line * size})
    assert time.process_time() - started < 30
