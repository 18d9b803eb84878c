"""Round trip (SPEC 8; issue of the mirror): what is exported comes back once, byte for byte, and can be exported again as it was."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from governance.deciding.decisions import approve_decision, create_decision, edit_decision
from governance.deciding.entries import merge_entry
from governance.deciding.gate import Corrections
from governance.deciding.memories import approve_memory
from governance.deciding.projects import create_project
from governance.demo.opening import WORKSPACE
from memory.errors import Invalid
from memory.ledger.verification import verify
from memory.mirror.importing import import_tree
from memory.mirror.reading.import_report import ImportReport
from memory.mirror.reading.sources import SOURCES
from memory.mirror.reading.tree import SourceTree, read_folder, read_zip
from memory.mirror.writing.export import export_zip
from memory.mirror.writing.rendering import NOW as NOW_MD
from memory.models import AgentMemory, Decision, DecisionInboxEntry, ImportedRecord, Project
from memory.recording import edit_memory, record_memory, submit_entry
from memory.sessions import SessionFields, start_session
from tests.conftest import NOW, Team
from tests.memory.mirror.trees import SQUAD, as_tree, as_zip, corpus_trees

pytestmark = pytest.mark.django_db

_numbers = count()


def new_project(team: Team) -> Project:
    slug = f"harbour-{next(_numbers)}"
    return create_project(actor=team.owner, name=slug, slug=slug, now=NOW)


def exported(project: Project, now: datetime = NOW) -> tuple[SourceTree, dict[str, bytes]]:
    """The project's export, to be read, and its files without the manifest."""
    stream, report = export_zip(project_id=project.pk, now=now)
    with stream:
        return read_zip(io.BytesIO(stream.read())), {file.path: file.data for file in report.files}


def without_session(files: dict[str, bytes]) -> dict[str, bytes]:
    """An import never opens a session, so the focus is the one thing that an export of an import does not have."""
    return {path: data for path, data in files.items() if path != NOW_MD}


def imported(team: Team, project: Project, tree: SourceTree, **options: Any) -> ImportReport:
    return import_tree(
        project_id=project.pk, actor=team.owner, tree=tree, **{"sources": SOURCES, "now": NOW, **options}
    )


def approve_all(team: Team, project: Project, types: Iterator[str] | None = None) -> None:
    """Approves every legacy row, decisions with the next of `types`."""
    given: dict[str, Any] = {"project_id": project.pk, "actor": team.owner, "now": NOW + timedelta(hours=1)}
    for decision in Decision.objects.filter(project=project).legacy():
        corrections = Corrections(type=next(types)) if types else Corrections()
        approve_decision(
            decision_id=decision.pk, revision=decision.revision, corrections=corrections, **given
        )
    for memory in AgentMemory.objects.filter(project=project).legacy():
        approve_memory(memory_id=memory.pk, revision=memory.revision, **given)


def texts_of(project: Project) -> list[str]:
    """What every exported row is made of, without the stamps of who did what when."""
    mine = {"project": project}
    decisions = Decision.objects.filter(**mine).values_list(
        "agent__name", "type", "title", "content", "rationale", "tags"
    )
    entries = DecisionInboxEntry.objects.filter(**mine).values_list(
        "agent__name", "type", "title", "content", "rationale", "tags", "slug", "importance"
    )
    memories = AgentMemory.objects.filter(**mine).values_list(
        "agent__name", "type", "content", "tags", "importance"
    )
    return sorted(map(repr, [*decisions, *entries, *memories]))


def origins_of(project: Project) -> list[str]:
    return sorted(ImportedRecord.objects.filter(project=project).values_list("original_id", flat=True))


def rows_of(project: Project) -> int:
    return sum(
        table.objects.filter(project=project).count() for table in (Decision, AgentMemory, DecisionInboxEntry)
    )


# --- records that hypothesis writes -------------------------------------------------------------------------------

NASTY = [
    "# Heading", "### 2026-01-01: Another record (Ana)", "---", "```", "~~~~", "````md\n# in a fence\n````", "<!--", "-->", "<!-- c -->",
    "---\nagent: x\nslug: y\ntype: scope\ntitle: z\n---", "**Rationale:**", "**By:** Mallory", "| a | b |", "<<<<<<< HEAD", "- bullet",
    "<!-- agentweaver:record 0123456789abcdef0123456789abcdef {} -->", "<!-- agentweaver:end 0123456789abcdef0123456789abcdef -->",
    '<!-- agentweaver:record 0123456789abcdef0123456789abcdef {"v":1,"kind":"decision","id":1,"data":{}} -->',
    "<!-- agentweaver:text 0123456789abcdef0123456789abcdef -->", "\r\n", "\r", "\n", "\n\n", "\u2028", "\u2029", "\x0b", "\x0c", "\x85",
    "\ufeff", "🌊", "👩‍🚀", "שלום עולם", "\u202eevil\u202c", "e\u0301", "\t", "   ", "\\", "BEGIN_AGENTWEAVER_UNTRUSTED_CONTEXT_JSON",
    "End.", "\x1b[31m", "\ufffd", "{{ x }}", "%s", "&amp;",
]  # fmt: skip
fragments = st.sampled_from(NASTY) | st.text(
    st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=12
)
texts = st.lists(fragments, min_size=1, max_size=8).map("".join)
contents = texts.filter(lambda text: bool(text.strip()))
titles = texts.map(lambda text: " ".join(text.split())[:300].strip()).filter(bool) | st.sampled_from(
    ["A: b", "- dash", '"quoted"', "yes", "2026-01-01", "#x", "[a]", "a --- b", "two  spaces", "---"]
)
agents = st.sampled_from(["Ana", "Bo", "a:b", "CON", "..x", "שרה", "Ünal"])
tags = st.lists(st.sampled_from(["ropes", "cross-team", "ü", "a b"]), max_size=3, unique=True)
importances = st.sampled_from(["high", "medium", "low"])
moments = st.timedeltas(timedelta(0), timedelta(days=400)).map(lambda ago: NOW - ago)
decisions = st.fixed_dictionaries(
    {"agent_name": agents, "type": st.sampled_from(["architectural", "scope", "process", "technical"]), "title": titles,
     "content": contents, "rationale": texts | st.just(""), "tags": tags, "now": moments}
)  # fmt: skip
memories = st.fixed_dictionaries(
    {"agent_name": agents, "type": st.sampled_from(["core_context", "learning", "pattern", "update"]), "content": contents,
     "importance": importances, "tags": tags, "now": moments}
)  # fmt: skip
entries = st.fixed_dictionaries(
    {"agent_name": agents, "type": st.sampled_from(["scope", "learning", "pattern"]), "title": titles, "content": contents,
     "rationale": texts | st.just(""), "importance": importances, "tags": tags, "now": moments}
)  # fmt: skip


def put(team: Team, project: Project, rows: dict[str, list[dict[str, Any]]]) -> None:
    """Writes rows; a title that no row can have is left out."""
    given: dict[str, Any] = {"project_id": project.pk, "actor": team.owner}
    for number, values in enumerate(rows["entries"]):
        try:
            submit_entry(slug=f"entry-{number}", **given, **values)
        except Invalid:
            submit_entry(slug=f"entry-{number}", **given, **{**values, "title": "Plain"})
    for values in rows["memories"]:
        memory = record_memory(**given, **values)
        if memory.type == "pattern":
            approve_memory(memory_id=memory.pk, revision=1, **given, now=NOW)
    for values in rows["decisions"]:
        try:
            create_decision(**given, **values)
        except Invalid:
            create_decision(**given, **{**values, "title": "Plain"})


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.fixed_dictionaries(
        {"decisions": st.lists(decisions, max_size=3), "memories": st.lists(memories, max_size=4),
         "entries": st.lists(entries, max_size=2)}
    ).filter(lambda rows: any(rows.values()))
)  # fmt: skip
def test_any_record_comes_back_once_and_is_exported_as_it_was(team: Team, rows: dict[str, Any]) -> None:
    first, second = new_project(team), new_project(team)
    put(team, first, rows)
    tree, files = exported(first)

    report = imported(team, second, tree)

    assert report.found == report.taken + report.skipped
    assert texts_of(second) == texts_of(first)
    assert set(Decision.objects.filter(project=second).values_list("trust_state", flat=True)) <= {"legacy"}
    assert set(AgentMemory.objects.filter(project=second).values_list("trust_state", flat=True)) <= {"legacy"}
    assert imported(team, second, exported(first)[0]).taken == 0
    assert imported(team, first, exported(first)[0]).taken == 0
    approve_all(team, second)
    again, second_files = exported(second)
    assert second_files == files
    assert imported(team, second, again).taken == 0


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(summary=texts, focus=texts, issues=st.lists(texts, max_size=3))
def test_a_session_comes_back_as_one_that_is_over(
    team: Team, summary: str, focus: str, issues: list[str]
) -> None:
    first, second = new_project(team), new_project(team)
    fields = SessionFields(focus_area=focus, active_issues=issues, summary=summary)
    start_session(project_id=first.pk, actor=team.owner, session_id="now", fields=fields, now=NOW)

    report = imported(team, second, exported(first)[0])

    assert report.taken_by_kind == {"session": 1}
    row = second.sessions.get()
    assert (row.session_id, row.focus_area, row.active_issues, row.summary) == ("now", focus, issues, summary)
    assert row.ended_at is not None
    assert imported(team, first, exported(first)[0]).taken == 0


# --- rules --------------------------------------------------------------------------------------------------------


def test_an_import_keeps_date_and_old_id_of_each_record(team: Team) -> None:
    first, second = new_project(team), new_project(team)
    written = NOW - timedelta(days=3, microseconds=7)
    decision = create_decision(
        project_id=first.pk,
        actor=team.owner,
        agent_name="Ana",
        type="scope",
        title="T",
        content="C",
        now=written,
    )
    imported(team, second, exported(first)[0])
    record = ImportedRecord.objects.get(project=second)
    assert (record.dated_at, record.original_id) == (written, f"{first.pk}:{decision.pk}")


def test_equal_texts_of_two_rows_both_come_back(team: Team) -> None:
    first, second = new_project(team), new_project(team)
    for kind in ("learning", "update"):
        record_memory(
            project_id=first.pk, actor=team.owner, agent_name="Ana", type=kind, content="Twice.", now=NOW
        )
    tree, _ = exported(first)
    assert imported(team, second, tree).taken_by_kind == {"memory": 2}
    assert texts_of(second) == texts_of(first)
    assert imported(team, second, exported(first)[0]).taken == 0
    assert origins_of(second) == sorted(
        f"{first.pk}:{m.pk}" for m in AgentMemory.objects.filter(project=first)
    )


def test_our_own_export_adds_nothing_although_the_rows_were_edited_since(team: Team) -> None:
    project = new_project(team)
    given: dict[str, Any] = {"project_id": project.pk, "actor": team.owner, "now": NOW}
    decision = create_decision(agent_name="Ana", type="scope", title="T", content="First.", **given)
    memory = record_memory(agent_name="Ana", type="learning", content="Learnt.", **given)
    entry, _ = submit_entry(
        agent_name="Ana", slug="s", type="learning", title="T", content="Proposed.", **given
    )
    old, _ = exported(project)
    edit_decision(decision_id=decision.pk, revision=1, content="Second.", rationale="R", title="New", **given)
    edit_decision(decision_id=decision.pk, revision=2, content="Third.", **given)
    edit_memory(memory_id=memory.pk, revision=1, content="Learnt better.", **given)
    merge_entry(entry_id=entry.pk, revision=1, **given)

    report = imported(team, project, old)

    assert report.taken == 0
    assert report.skipped_by_reason["already_known"] == 3


def test_a_text_edited_by_hand_in_our_export_comes_as_a_new_row_that_points_at_the_old_one(
    team: Team,
) -> None:
    project = new_project(team)
    given: dict[str, Any] = {"project_id": project.pk, "actor": team.owner, "now": NOW}
    decision = create_decision(agent_name="Ana", type="scope", title="T", content="Ours.", **given)
    files = {path: data.replace(b"Ours.", b"Theirs.") for path, data in exported(project)[1].items()}

    report = imported(team, project, read_zip(as_zip(files)))

    # The ledger and the boundaries hold the same text: one row.
    assert report.taken_by_kind == {"decision": 1}
    new = Decision.objects.exclude(pk=decision.pk).get(project=project)
    assert (new.content, new.trust_state, new.type) == ("Theirs.", "legacy", "scope")
    assert ImportedRecord.objects.get(decision=new).original_id == f"{project.pk}:{decision.pk}"
    assert imported(team, project, read_zip(as_zip(files))).taken == 0


def test_marks_that_name_a_row_it_never_was_do_not_hide_a_text(team: Team) -> None:
    """A forged id is no proof: only a text that the row has or had makes a record known."""
    project, other = new_project(team), new_project(team)
    given: dict[str, Any] = {
        "actor": team.owner,
        "agent_name": "Ana",
        "type": "scope",
        "title": "T",
        "now": NOW,
    }
    mine = create_decision(project_id=project.pk, content="Mine.", **given)
    theirs = create_decision(project_id=other.pk, content="Theirs.", **given)
    old, new = f'"id":{theirs.pk},', f'"id":{mine.pk},'
    files = {
        path: data.replace(old.encode(), new.encode()).replace(
            str(other.pk).encode(), str(project.pk).encode()
        )
        for path, data in exported(other)[1].items()
    }
    assert imported(team, project, read_zip(as_zip(files))).taken == 1


def test_the_export_of_an_import_is_known_where_it_was_imported_after_edits_too(team: Team) -> None:
    first, second = new_project(team), new_project(team)
    memory = record_memory(
        project_id=first.pk, actor=team.owner, agent_name="Ana", type="learning", content="One.", now=NOW
    )
    imported(team, second, exported(first)[0])
    approve_all(team, second)
    copy = AgentMemory.objects.get(project=second)
    edit_memory(
        project_id=second.pk,
        actor=team.owner,
        memory_id=copy.pk,
        revision=copy.revision,
        content="Two.",
        now=NOW,
    )
    tree, files = exported(second)
    assert f'"id":{memory.pk},'.encode() in files[".squad/agents/ana/history.md"]
    assert imported(team, second, tree).taken == 0
    # Where it came from, the edit is news.
    back = imported(team, first, exported(second)[0])
    assert back.taken_by_kind == {"memory": 1}
    assert AgentMemory.objects.filter(project=first).latest("pk").content == "Two."


def test_the_export_of_a_foreign_tree_adds_nothing_where_that_tree_was_imported(team: Team) -> None:
    first, second = new_project(team), new_project(team)
    for project in (first, second):
        imported(team, project, as_tree(SQUAD))
    approve_all(team, first)
    assert imported(team, second, exported(first)[0]).taken == 0


def test_undated_records_stay_undated_and_stand_first(team: Team) -> None:
    """B04."""
    first, second = new_project(team), new_project(team)
    imported(team, first, as_tree(SQUAD), sources={"ledger"})
    approve_all(team, first)
    create_decision(
        project_id=first.pk, actor=team.owner, agent_name="Ana", type="scope", title="Old", content="C",
        now=NOW - timedelta(days=3000),
    )  # fmt: skip
    tree, files = exported(first)
    text = files[".squad/decisions.md"].decode()
    titles_in_order = [line[3:] for line in text.split("\n") if line.startswith("## ")]
    assert titles_in_order == [
        "Type safety, strict mode",
        "Old",
        "One harbour first",
        "Charts live in `charts/`",
    ]
    imported(team, second, tree)
    approve_all(team, second)
    assert exported(second)[1] == files


def test_patterns_alone_come_back(team: Team) -> None:
    """An export without anything in `.squad` is still a tree."""
    first, second = new_project(team), new_project(team)
    memory = record_memory(
        project_id=first.pk, actor=team.owner, agent_name="Ana", type="pattern", content="Knots.", now=NOW
    )
    approve_memory(project_id=first.pk, actor=team.owner, memory_id=memory.pk, revision=1, now=NOW)
    assert imported(team, second, exported(first)[0]).taken_by_kind == {"memory": 1}


# --- real trees ---------------------------------------------------------------------------------------------------


def _types() -> Iterator[str]:
    while True:
        yield from ("architectural", "scope", "process", "technical")


def _round_trip(team: Team, tree: SourceTree) -> None:
    first, second = new_project(team), new_project(team)
    taken = imported(team, first, tree).taken_by_kind
    approve_all(team, first, _types())
    export, files = exported(first)

    there = imported(team, second, export)

    kept = {kind: count for kind, count in taken.items() if kind not in ("charter", "session")}
    assert there.taken_by_kind == kept
    assert there.found == there.taken + there.skipped
    # A file of ours holds nothing beside its records; the boundaries repeat the ledger.
    assert set(there.skipped_by_reason) <= {"duplicate", "not_a_record", "preamble", "comment"}
    assert texts_of(second) == texts_of(first)
    assert imported(team, second, exported(first)[0]).taken == 0
    assert imported(team, first, exported(first)[0]).taken == 0
    approve_all(team, second)
    assert exported(second)[1] == files
    assert rows_of(first) == rows_of(second) == sum(kept.values())
    for project in (first, second):
        project.refresh_from_db()
        assert verify(project).valid


@pytest.mark.parametrize("tree", corpus_trees(), ids=lambda tree: tree.name)
def test_a_real_tree_goes_round_without_a_lost_or_doubled_record(team: Team, tree: Path) -> None:
    _round_trip(team, read_folder(tree))


def test_a_small_tree_goes_round_without_a_lost_or_doubled_record(team: Team) -> None:
    _round_trip(team, as_tree(SQUAD))


def test_the_tree_of_the_demo_goes_round_without_a_lost_or_doubled_record(team: Team) -> None:
    _round_trip(team, read_folder(WORKSPACE))
