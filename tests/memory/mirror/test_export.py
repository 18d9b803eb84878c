"""Export (SPEC 8): exactly the rows it should, from the database, whole or not at all, and never over somebody else's file."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from governance.deciding.decisions import archive_decision, create_decision, edit_decision
from governance.deciding.entries import reject_entry
from governance.deciding.memories import approve_memory, retire_memory
from memory.errors import Conflict, ExportFailed, NotFound
from memory.mirror.importing import import_tree
from memory.mirror.writing import paths, swapping
from memory.mirror.writing.export import as_json, export_to_folder, export_to_workspace, export_zip
from memory.mirror.writing.folders import Folder
from memory.mirror.writing.manifest import verify_export
from memory.mirror.writing.paths import safe_names
from memory.mirror.writing.workspace import last_export
from memory.models import AgentMemory, Decision, DecisionInboxEntry, LedgerEvent, Project
from memory.recording import record_memory, submit_entry
from memory.sessions import SessionFields, start_session, update_session
from tests.conftest import NOW, Team
from tests.memory.mirror.trees import SQUAD, as_tree

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(days=1)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its path."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def remember(team: Team, content: str, **options: Any) -> AgentMemory:
    given = {"agent_name": "Ana", "type": "learning", "now": NOW, **options}
    return record_memory(project_id=team.project.pk, actor=team.owner, content=content, **given)


def decide(team: Team, title: str, **options: Any) -> Decision:
    given = {"agent_name": "Ana", "type": "scope", "content": f"About {title}.", "now": NOW, **options}
    return create_decision(project_id=team.project.pk, actor=team.owner, title=title, **given)


def propose(team: Team, slug: str, **options: Any) -> DecisionInboxEntry:
    given = {
        "agent_name": "Bo",
        "type": "scope",
        "title": slug,
        "content": "Proposed.",
        "now": NOW,
        **options,
    }
    entry, _ = submit_entry(project_id=team.project.pk, actor=team.owner, slug=slug, **given)
    return entry


@pytest.fixture
def full(team: Team) -> Team:
    """A project with a row of every kind that is exported."""
    decide(team, "One harbour first", rationale="Small crew.")
    decide(team, "Reviews on Monday", type="process")
    propose(team, "night-watch", rationale="It is dark.")
    remember(team, "Keel is in Go.", type="core_context")
    remember(team, "Ropes shrink when wet.", importance="high", tags=["ropes"])
    remember(team, "It was the mast.", type="update")
    pattern = remember(team, "Check the anchor twice.", type="pattern")
    approve_memory(project_id=team.project.pk, actor=team.owner, memory_id=pattern.pk, revision=1, now=NOW)
    start_session(
        project_id=team.project.pk, actor=team.owner, session_id="autumn", now=NOW,
        fields=SessionFields(focus_area="The wall", active_issues=["#1"], summary="Before winter."),
    )  # fmt: skip
    return team


def export(team: Team, folder: Path, **options: Any) -> Any:
    return export_to_folder(project_id=team.project.pk, path=folder, **{"now": NOW, **options})


ALL = [
    ".agentweaver/context/boundaries.md",
    ".agentweaver/context/patterns.md",
    ".squad/agents/ana/history.md",
    ".squad/decisions.md",
    ".squad/decisions/inbox/night-watch.md",
    ".squad/identity/now.md",
]
MANIFEST = ".agentweaver/context/manifest.json"


# --- which rows, which files ------------------------------------------------------------------------------------


def test_every_file_of_the_contract_is_written(full: Team, tmp_path: Path) -> None:
    report = export(full, tmp_path)
    assert sorted(contents(tmp_path)) == sorted([MANIFEST, *ALL])
    assert [file.path for file in report.files] == ALL
    assert report.counts == {"decisions": 2, "entries": 1, "memories": 3, "patterns": 1, "sessions": 1}
    assert verify_export(tmp_path).valid


def test_only_rows_that_may_stand_in_files_do(full: Team, tmp_path: Path) -> None:
    project, owner = full.project.pk, full.owner
    archive_decision(
        project_id=project, actor=owner, decision_id=decide(full, "Gone").pk, reason="x", now=NOW
    )
    reject_entry(project_id=project, actor=owner, entry_id=propose(full, "refused").pk, reason="x", now=NOW)
    retire_memory(
        project_id=project, actor=owner, memory_id=remember(full, "Retired").pk, reason="x", now=NOW
    )
    remember(full, "Pending pattern", type="pattern")
    import_tree(project_id=project, actor=owner, tree=as_tree(SQUAD), sources={"ledger", "agents"}, now=NOW)

    report = export(full, tmp_path)

    assert [file.path for file in report.files] == ALL
    assert report.counts == {"decisions": 2, "entries": 1, "memories": 3, "patterns": 1, "sessions": 1}


def test_boundaries_are_the_binding_decisions_alone(full: Team, tmp_path: Path) -> None:
    report = export(full, tmp_path)
    rows = {file.path: file.rows for file in report.files}
    binding = Decision.objects.get(title="One harbour first").pk
    assert rows[".agentweaver/context/boundaries.md"] == {"decision": [binding]}
    assert rows[".squad/decisions.md"] == {
        "decision": list(Decision.objects.order_by("pk").values_list("pk", flat=True))
    }


def test_the_manifest_names_every_file_with_digest_rows_and_moment(full: Team, tmp_path: Path) -> None:
    export(full, tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    full.project.refresh_from_db()
    assert (manifest["project"], manifest["epoch"], manifest["exported_at"], manifest["complete"]) == (
        str(full.project.pk), full.project.epoch, "2026-12-01T09:00:00Z", True,
    )  # fmt: skip
    for file in manifest["files"]:
        data = (tmp_path / file["path"]).read_bytes()
        assert (file["sha256"], file["bytes"]) == (hashlib.sha256(data).hexdigest(), len(data))
    memories = AgentMemory.objects.exclude(type="pattern").order_by("pk").values_list("pk", flat=True)
    rows = {file["path"]: file["rows"] for file in manifest["files"]}
    assert rows[".squad/agents/ana/history.md"] == {"memory": list(memories)}


def test_files_are_utf_8_without_mark_and_with_line_feeds(full: Team, tmp_path: Path) -> None:
    remember(full, "Line one\r\nLine two\rLine three 🌊")
    export(full, tmp_path)
    for data in contents(tmp_path).values():
        data.decode("utf-8")
        assert not data.startswith(b"\xef\xbb\xbf")
        assert b"\r" not in data


@pytest.mark.parametrize(
    "title",
    ["A: b", "- dash", '"quoted"', "yes", "2026-01-01", "#x", "[a]", "a --- b", "---", "a\u00a0b", "é: 🌊"],
)
def test_titles_of_inbox_files_are_read_back_by_any_yaml_reader(
    team: Team, tmp_path: Path, title: str
) -> None:
    """B30."""
    propose(team, "odd-title", title=title)
    export(team, tmp_path)
    front = (tmp_path / ".squad/decisions/inbox/odd-title.md").read_text().split("\n---\n")[0]
    assert yaml.safe_load(front.removeprefix("---\n")) == {
        "agent": "Bo", "slug": "odd-title", "type": "scope", "title": title.strip(),
    }  # fmt: skip


def test_now_md_says_when_the_session_was_last_written(full: Team, tmp_path: Path) -> None:
    update_session(
        project_id=full.project.pk, actor=full.owner, session_id="autumn", fields=SessionFields(summary="Snow."), now=LATER
    )  # fmt: skip
    export(full, tmp_path)
    front = (tmp_path / ".squad/identity/now.md").read_text().split("---\n")[1]
    assert yaml.safe_load(front) == {
        "updated_at": "2026-12-02T09:00:00Z", "focus_area": "The wall", "active_issues": ["#1"],
    }  # fmt: skip


def test_an_unknown_project_is_not_found(team: Team, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        export_to_folder(project_id=Project().pk, path=tmp_path, now=NOW)
    with pytest.raises(NotFound):
        export_zip(project_id=Project().pk, now=NOW)


# --- again --------------------------------------------------------------------------------------------------------


def test_a_second_export_of_unchanged_rows_touches_nothing(full: Team, tmp_path: Path) -> None:
    export(full, tmp_path)
    before = {path: (tmp_path / path).stat() for path in contents(tmp_path)}

    report = export(full, tmp_path, now=LATER)

    after = {path: (tmp_path / path).stat() for path in contents(tmp_path)}
    assert {path: (s.st_ino, s.st_mtime_ns) for path, s in after.items()} == {
        path: (s.st_ino, s.st_mtime_ns) for path, s in before.items()
    }
    assert (report.written, report.removed, report.kept, report.exported_at) == ((), (), (), LATER)


def test_files_without_rows_disappear_with_their_empty_folders(full: Team, tmp_path: Path) -> None:
    export(full, tmp_path)
    for memory in AgentMemory.objects.all():
        retire_memory(project_id=full.project.pk, actor=full.owner, memory_id=memory.pk, reason="x", now=NOW)
    entry = DecisionInboxEntry.objects.get()
    reject_entry(project_id=full.project.pk, actor=full.owner, entry_id=entry.pk, reason="x", now=NOW)

    report = export(full, tmp_path)

    assert report.removed == (ALL[1], ALL[2], ALL[4])
    assert list(contents(tmp_path)) == [ALL[0], MANIFEST, ALL[3], ALL[5]]
    assert not (tmp_path / ".squad/agents").exists()


def test_an_export_comes_from_the_database_and_says_of_which_moment(full: Team, tmp_path: Path) -> None:
    """B07: an older copy in the folder is never read as truth."""
    export(full, tmp_path)
    decision = Decision.objects.get(title="One harbour first")
    edit_decision(
        project_id=full.project.pk,
        actor=full.owner,
        decision_id=decision.pk,
        revision=1,
        content="Two.",
        now=LATER,
    )
    report = export(full, tmp_path, now=LATER)
    assert "\nTwo.\n" in (tmp_path / ".squad/decisions.md").read_text()
    assert (report.exported_at, report.epoch) == (LATER, Project.objects.get(pk=full.project.pk).epoch)


def test_history_does_not_depend_on_the_files(full: Team, tmp_path: Path) -> None:
    """B10: the files are a mirror; without them nothing is missing."""
    export(full, tmp_path)
    before = contents(tmp_path)
    for path in before:
        (tmp_path / path).unlink()
    assert LedgerEvent.objects.filter(action="decision.create").count() == 2
    export(full, tmp_path)
    assert contents(tmp_path) == before


# --- files of others ----------------------------------------------------------------------------------------------


def test_files_we_did_not_write_stay_and_are_named(full: Team, tmp_path: Path) -> None:
    foreign = {
        ".squad/decisions/inbox/own.md": b"# Ours\n", ".squad/agents/ana/charter.md": b"# Ana\n",
        ".squad/team.md": b"Team\n", ".squad/log/today.md": b"Log\n",
    }  # fmt: skip
    for path, data in foreign.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)

    report = export(full, tmp_path)

    assert {path: data for path, data in contents(tmp_path).items() if path in foreign} == foreign
    assert report.foreign == (
        ".squad/agents/ana/charter.md",
        ".squad/decisions/inbox/own.md",
        ".squad/team.md",
    )
    assert report.kept == ()


def test_a_team_that_moves_in_keeps_a_copy_of_its_own_ledger(full: Team, tmp_path: Path) -> None:
    own = b"# Decisions\n\n### 2026-01-01: Ours\n"
    (tmp_path / ".squad").mkdir()
    (tmp_path / ".squad/decisions.md").write_bytes(own)

    report = export(full, tmp_path)

    (kept,) = report.kept
    assert (kept.path, kept.reason) == (".squad/decisions.md", "not_ours")
    assert (tmp_path / kept.copy).read_bytes() == own
    assert b"One harbour first" in (tmp_path / ".squad/decisions.md").read_bytes()
    assert export(full, tmp_path).kept == ()
    assert (tmp_path / kept.copy).read_bytes() == own


def test_an_edit_by_hand_is_kept_and_named(full: Team, tmp_path: Path) -> None:
    export(full, tmp_path)
    ledger, entry = tmp_path / ALL[3], tmp_path / ALL[4]
    ledger.write_text(ledger.read_text() + "\nBy hand.\n")
    entry.write_text(entry.read_text() + "\nBy hand too.\n")
    edited = ledger.read_bytes()
    reject_entry(
        project_id=full.project.pk,
        actor=full.owner,
        entry_id=DecisionInboxEntry.objects.get().pk,
        reason="x",
        now=NOW,
    )

    report = export(full, tmp_path)

    copied, left = report.kept
    assert (copied.path, copied.reason, (tmp_path / copied.copy).read_bytes()) == (ALL[3], "edited", edited)
    assert (left.path, left.copy, left.reason) == (ALL[4], ALL[4], "edited")
    assert "By hand too." in entry.read_text()
    assert verify_export(tmp_path).valid
    assert export(full, tmp_path).foreign == (ALL[4],)


def test_the_folder_of_another_project_is_refused(full: Team, tmp_path: Path) -> None:
    export(full, tmp_path)
    before = contents(tmp_path)
    other = Project.objects.create(slug="other", name="Other", created_at=NOW)
    with pytest.raises(Conflict, match="another project, lighthouse"):
        export_to_folder(project_id=other.pk, path=tmp_path, now=NOW)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "damage",
    ["", "{", "[]", "null", '{"schema":"agentweaver.mirror.v1"}', '{"schema":"x","files":[]}', "[" * 5000],
)
def test_with_a_damaged_manifest_no_file_is_taken_for_ours(full: Team, tmp_path: Path, damage: str) -> None:
    export(full, tmp_path)
    old = (tmp_path / ALL[3]).read_bytes()
    decide(full, "Another")
    (tmp_path / MANIFEST).write_text(damage)
    report = export(full, tmp_path)
    kept = {kept.path: (tmp_path / kept.copy).read_bytes() for kept in report.kept}
    assert kept[ALL[3]] == old
    assert verify_export(tmp_path).valid


@pytest.mark.parametrize(
    "path", ["../outside.md", "/etc/passwd", ".squad/team.md", ".squad/agents/ana/charter.md"]
)
def test_a_forged_manifest_removes_no_file_the_mirror_never_writes(
    full: Team, tmp_path: Path, path: str
) -> None:
    folder = tmp_path / "repo"
    export(full, folder)
    victim = tmp_path / "outside.md" if path.startswith(("..", "/")) else folder / path
    victim.parent.mkdir(parents=True, exist_ok=True)
    victim.write_bytes(b"mine")
    manifest = json.loads((folder / MANIFEST).read_text())
    digest = hashlib.sha256(b"mine").hexdigest()
    manifest["files"].append({"path": path, "sha256": digest, "bytes": 4, "rows": {}})
    (folder / MANIFEST).write_text(json.dumps(manifest))
    export(full, folder)
    assert victim.read_bytes() == b"mine"


# --- failures -----------------------------------------------------------------------------------------------------


def failing_at(call: int, of: Callable[..., Any]) -> Callable[..., Any]:
    """`of`, raising like a full disk when it is called for the `call`th time."""
    calls = iter(range(1, 1_000_000))

    def run(*args: Any, **options: Any) -> Any:
        if next(calls) == call:
            raise OSError(28, "No space left on device")
        return of(*args, **options)

    return run


def changed(team: Team) -> None:
    """Changes that write, make and remove files."""
    decide(team, "Another")
    remember(team, "New agent.", agent_name="Cy")
    reject_entry(
        project_id=team.project.pk,
        actor=team.owner,
        entry_id=DecisionInboxEntry.objects.get().pk,
        reason="x",
        now=NOW,
    )


STEPS = {"write_new": 5, "link": 4, "move": 5, "remove": 1, "sync": 4}
"""How often each step is taken when `changed` is written: three files, one removal, two manifests."""


@pytest.mark.parametrize(
    ("step", "call"), [(step, n) for step, last in STEPS.items() for n in range(1, last + 1)]
)
def test_a_failure_at_any_step_leaves_the_old_files_whole(
    full: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, call: int
) -> None:
    export(full, tmp_path)
    before = contents(tmp_path)
    changed(full)
    with monkeypatch.context() as patch:
        patch.setattr(Folder, step, failing_at(call, getattr(Folder, step)))
        with pytest.raises(ExportFailed, match="No space left on device"):
            export(full, tmp_path)
    assert contents(tmp_path) == before

    assert export(full, tmp_path).removed == (ALL[4],)
    assert verify_export(tmp_path).complete


def test_rows_that_cannot_be_read_leave_the_old_files_whole(
    full: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B29: reading the pattern rows fails in the middle; no file is written with an empty part."""
    export(full, tmp_path)
    before = contents(tmp_path)
    changed(full)

    def fail(*_: object) -> Iterator[Any]:
        raise ValueError("a row that cannot be read")

    monkeypatch.setattr("memory.mirror.writing.rendering.Rows.patterns", property(fail))
    with pytest.raises(ExportFailed):
        export(full, tmp_path)
    assert contents(tmp_path) == before


def test_what_a_killed_export_left_is_finished_by_the_next(
    full: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies between two renames: neither undo nor tidying runs."""
    export(full, tmp_path)
    changed(full)
    with monkeypatch.context() as patch:
        patch.setattr(Folder, "move", failing_at(3, Folder.move))
        patch.setattr(swapping._Swap, "_undo", lambda _: None)
        patch.setattr(swapping._Swap, "_tidy", lambda _: None)
        with pytest.raises(ExportFailed):
            export(full, tmp_path)
    check = verify_export(tmp_path)
    assert (check.valid, check.complete) == (True, False)

    report = export(full, tmp_path)

    assert report.kept == ()
    check = verify_export(tmp_path)
    assert (check.valid, check.complete) == (True, True)
    assert list(contents(tmp_path)) == sorted(
        [*(set(ALL) - {ALL[4]}), ".squad/agents/cy/history.md", MANIFEST]
    )


def test_a_folder_without_manifest_cannot_be_verified(tmp_path: Path) -> None:
    with pytest.raises(ExportFailed, match="no manifest"):
        verify_export(tmp_path)


def test_verifying_names_what_is_not_as_it_was_written(full: Team, tmp_path: Path) -> None:
    export(full, tmp_path)
    (tmp_path / ALL[0]).unlink()
    (tmp_path / ALL[3]).write_text("other")
    assert verify_export(tmp_path).wrong == {ALL[0]: "missing", ALL[3]: "changed"}


def test_a_second_export_waits_for_the_first_and_gives_up(
    full: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.mirror.writing.export.LOCK_SECONDS", 0.1)
    with Folder(tmp_path) as folder, folder.locked(0), pytest.raises(ExportFailed, match="Another export"):
        export(full, tmp_path)


# --- paths --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "link", [".squad", ".agentweaver", ".squad/agents", ".squad/agents/ana", ".squad/decisions.md", MANIFEST]
)
def test_no_symlink_is_followed_at_any_level(full: Team, tmp_path: Path, link: str) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "repo"
    outside.mkdir()
    (outside / "file").write_text("mine")
    (folder / link).parent.mkdir(parents=True, exist_ok=True)
    (folder / link).symlink_to(outside if "." not in link[1:] else outside / "file")
    with pytest.raises(ExportFailed):
        export(full, folder)
    assert contents(outside) == {"file": b"mine"}
    assert list(contents(folder)) == ([link] if (folder / link).is_file() else [])


def test_agents_that_collide_as_files_get_files_of_their_own(team: Team, tmp_path: Path) -> None:
    names = ["a:b", "a?b", "a-b", "CON", "con.x", ".hidden", "_alumni", "trailing.", "x" * 100, "…" * 100, "ß", "Ö",
             "..\\up", "a\u202eb", "LPT¹"]  # fmt: skip
    for name in names:
        remember(team, f"I am {name}.", agent_name=name)

    report = export(team, tmp_path)

    folders = {file.path.split("/")[2] for file in report.files}
    assert len({folder.casefold() for folder in folders}) == len(names)
    assert {folder for folder in folders if folder.isascii() and "-" not in folder} == {"x" * 100, "ss"}
    for folder in folders:
        assert len(folder.encode()) <= 120
        assert not set(folder) & set('<>:"|?*\\/\u202e')
        assert folder.strip(" ._") == folder


def test_a_name_stays_the_same_whoever_comes_or_goes() -> None:
    odd = safe_names(["a:b"])["a:b"]
    assert safe_names(["a:b", "a?b", "ana"])["a:b"] == odd
    # An agent who is named like the digest of another keeps the name; the other one's gets longer.
    both = safe_names(["a:b", odd])
    assert both[odd] == odd
    assert both["a:b"].startswith(odd)
    assert both["a:b"] != odd


def test_a_slug_no_system_can_hold_as_a_file_gets_another_name(team: Team, tmp_path: Path) -> None:
    for slug in ("con", "nul", "readme", "fine"):
        propose(team, slug)
    report = export(team, tmp_path)
    names = [file.path.rsplit("/", 1)[-1] for file in report.files]
    assert "fine.md" in names
    assert not {"con.md", "nul.md", "readme.md"} & set(names)
    assert len(names) == 4


@pytest.mark.parametrize(
    "path", ["", ".", "..", "a/../b", "/a", "a//b", "a\\b", "c:d", "nul", "a/con.md", "a ", "a\x00"]
)
def test_a_path_that_could_leave_is_refused(path: str) -> None:
    with pytest.raises(ExportFailed):
        paths.checked_path(path)


# --- workspace ----------------------------------------------------------------------------------------------------


def test_the_workspace_is_the_projects_folder_inside_the_root(
    full: Team, tmp_path: Path, settings: Any
) -> None:
    settings.AGENTWEAVER_WORKSPACE_ROOT = str(tmp_path)
    export_to_workspace(project_id=full.project.pk, now=NOW)
    assert verify_export(tmp_path / "lighthouse").valid
    Project.objects.filter(pk=full.project.pk).update(workspace="teams/north")
    export_to_workspace(project_id=full.project.pk, now=NOW)
    assert verify_export(tmp_path / "teams/north").valid


def test_what_was_exported_last_can_be_read_and_reading_makes_no_folder(
    full: Team, tmp_path: Path, settings: Any
) -> None:
    settings.AGENTWEAVER_WORKSPACE_ROOT = str(tmp_path)
    project = Project.objects.get(pk=full.project.pk)
    assert last_export(project) is None
    assert list(tmp_path.iterdir()) == []
    export_to_workspace(project_id=project.pk, now=NOW)
    last = last_export(project)
    assert last is not None
    assert (last.slug, last.epoch, last.complete, [file.path for file in last.files]) == (
        "lighthouse", project.epoch, True, ALL,
    )  # fmt: skip


@pytest.mark.parametrize("workspace", ["../elsewhere", "/tmp", "a/../../b", "a\\b"])
def test_a_workspace_outside_the_root_is_refused(
    full: Team, tmp_path: Path, settings: Any, workspace: str
) -> None:
    settings.AGENTWEAVER_WORKSPACE_ROOT = str(tmp_path / "root")
    (tmp_path / "root").mkdir()
    Project.objects.filter(pk=full.project.pk).update(workspace=workspace)
    with pytest.raises(ExportFailed):
        export_to_workspace(project_id=full.project.pk, now=NOW)
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_a_workspace_that_is_a_symlink_is_refused(full: Team, tmp_path: Path, settings: Any) -> None:
    settings.AGENTWEAVER_WORKSPACE_ROOT = str(tmp_path / "root")
    (tmp_path / "outside").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "root/lighthouse").symlink_to(tmp_path / "outside")
    with pytest.raises(ExportFailed):
        export_to_workspace(project_id=full.project.pk, now=NOW)
    assert contents(tmp_path / "outside") == {}


def test_without_a_root_or_with_a_missing_one_there_is_no_workspace(
    full: Team, tmp_path: Path, settings: Any
) -> None:
    settings.AGENTWEAVER_WORKSPACE_ROOT = ""
    with pytest.raises(Conflict) as refused:
        export_to_workspace(project_id=full.project.pk, now=NOW)
    assert refused.value.code == "no_workspace"
    settings.AGENTWEAVER_WORKSPACE_ROOT = str(tmp_path / "missing")
    with pytest.raises(ExportFailed):
        export_to_workspace(project_id=full.project.pk, now=NOW)


# --- zip and command ----------------------------------------------------------------------------------------------


def test_the_zip_holds_the_same_files_and_always_the_same_bytes(full: Team, tmp_path: Path) -> None:
    export(full, tmp_path)
    first, report = export_zip(project_id=full.project.pk, now=NOW)
    second, _ = export_zip(project_id=full.project.pk, now=NOW)
    with first, second:
        assert first.read() == second.read()
        with zipfile.ZipFile(first) as archive:
            assert {name: archive.read(name) for name in archive.namelist()} == contents(tmp_path)
    assert [file.path for file in report.files] == ALL


def test_the_answer_lists_the_files_and_counts(full: Team, tmp_path: Path) -> None:
    answer = as_json(export(full, tmp_path))
    assert [file["path"] for file in answer["files"]] == ALL
    assert (answer["decisions"], answer["entries"], answer["memories"], answer["patterns"], answer["sessions"]) == (
        2, 1, 3, 1, 1,
    )  # fmt: skip
    assert answer["written"] == ALL


def test_the_command_prints_the_files_and_nothing_else(full: Team, tmp_path: Path) -> None:
    out, err = StringIO(), StringIO()
    (tmp_path / ".squad").mkdir()
    (tmp_path / ".squad/decisions.md").write_text("mine")
    call_command("export_memory", "lighthouse", str(tmp_path), stdout=out, stderr=err)
    assert out.getvalue().split("\n") == [*ALL, ""]
    assert "2 decisions, 1 entries, 3 memories, 1 patterns, 1 sessions" in err.getvalue()
    assert ".squad/decisions.md was not_ours: kept as .agentweaver/kept/" in err.getvalue()


def test_the_command_fails_in_readable_words(full: Team, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CommandError, match="export_failed"):
        call_command("export_memory", "lighthouse", str(tmp_path / "file"))
    with pytest.raises(CommandError, match="no project"):
        call_command("export_memory", "nowhere", str(tmp_path))
