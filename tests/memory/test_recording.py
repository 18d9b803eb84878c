"""Recording and editing memory, and who an agent is (SPEC 3, 5, 6)."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest

from governance.deciding.memories import approve_memory, retire_memory
from memory.actors import Human, VerifiedRun
from memory.enums import SourceKind, TrustState
from memory.errors import Conflict, CredentialRefused, Invalid, NotFound, Refused, Stale
from memory.ledger.changes import change, state_of
from memory.models import Agent, AgentMemory, LedgerEvent, Project, Run
from memory.recording import edit_memory, record_memory
from memory.runs import finish_run
from memory.sessions import start_session
from tests.conftest import NOW, Team, start_run
from tests.factories import LEGACY, MemoryFactory, ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db

DECOMPOSED = unicodedata.normalize("NFD", "José")


def record(team: Team, actor: Human | VerifiedRun | None = None, **values: Any) -> AgentMemory:
    given: dict[str, Any] = {"agent_name": "Ana", "type": "learning", "content": "Text."}
    return record_memory(
        project_id=team.project.pk, actor=actor or team.contributor, now=NOW, **{**given, **values}
    )


def edit(
    team: Team, memory: AgentMemory, actor: Human | VerifiedRun | None = None, **values: Any
) -> AgentMemory:
    given = {"memory_id": memory.pk, "revision": memory.revision}
    return edit_memory(
        project_id=team.project.pk, actor=actor or team.contributor, now=NOW, **{**given, **values}
    )


def approve(team: Team, memory: AgentMemory, **values: Any) -> AgentMemory:
    return approve_memory(
        project_id=team.project.pk, actor=team.owner, memory_id=memory.pk, revision=memory.revision, now=NOW, **values
    )  # fmt: skip


def written(project: Project) -> tuple[int, int, int]:
    """What a refused change must leave as it was."""
    return LedgerEvent.objects.count(), Project.objects.get(pk=project.pk).epoch, Agent.objects.count()


# Recording


def test_a_person_records_on_behalf_of_an_agent_and_stays_the_source(team: Team) -> None:
    session = start_session(project_id=team.project.pk, actor=team.owner, session_id="s-1", now=NOW)
    memory = record(
        team, type="pattern", importance="high", content=" A\r\nB ", tags="Cross-Team, b", session_id=" s-1 "
    )
    stored = AgentMemory.objects.get()
    assert state_of(stored) == state_of(memory) == {
        "agent_id": Agent.objects.get().pk, "type": "pattern", "importance": "high", "content": " A\r\nB ",
        "tags": ["cross-team", "b"], "session_id": session.pk, "revision": 1, "source_kind": "human",
        "source_identity": "contributor", "source_run_id": None, "trust_state": "pending", "approved_by": "",
        "approved_at": None, "created_at": "2026-12-01T09:00:00.000000+00:00",
        "updated_at": "2026-12-01T09:00:00.000000+00:00", "retired_at": None, "retired_by": "", "retire_reason": "",
    }  # fmt: skip
    assert (memory.cross_team, stored.cross_team) == (True, True)


@pytest.mark.parametrize("role", ["worker", "coordinator"])
def test_a_run_records_as_itself(team: Team, role: str) -> None:
    run = start_run(team, role=role)
    memory = record(team, run)
    assert (memory.source_kind, memory.source_identity, memory.source_run_id) == (
        SourceKind.RUN, f"run:{run.run_id}", run.run_id,
    )  # fmt: skip
    assert memory.trust_state == TrustState.PENDING
    assert memory.importance == "medium"


@pytest.mark.parametrize(
    ("field", "value"),
    [("agent_name", ""), ("agent_name", "a/b"), ("type", "architectural"), ("type", "CORE_CONTEXT"), ("importance", "urgent"),
     ("importance", ""), ("content", ""), ("content", " \n"), ("content", "x" * 65_537), ("content", "a\x00b"),
     ("content", "\ud800"), ("tags", ["a,b"]), ("tags", "x" * 65), ("session_id", "unknown"), ("session_id", "s-of-another")],
)  # fmt: skip
def test_a_wrong_field_is_named_and_nothing_is_written(team: Team, field: str, value: Any) -> None:
    SessionFactory(project=ProjectFactory(), session_id="s-of-another")
    before = written(team.project)
    with pytest.raises(Invalid) as caught:
        record(team, **{field: value})
    assert list(caught.value.errors) == [field]
    assert written(team.project) == before


def test_all_wrong_fields_are_named_together(team: Team) -> None:
    with pytest.raises(Invalid) as caught:
        record(team, agent_name="/", type="x", content="", tags="x" * 65)
    assert sorted(caught.value.errors) == ["agent_name", "content", "tags", "type"]


def test_recording_writes_one_event_and_raises_the_epoch_once(team: Team) -> None:
    events, epoch, _ = written(team.project)
    memory = record(team)
    assert written(team.project) == (events + 2, epoch + 1, 1)
    last = LedgerEvent.objects.order_by("number").last()
    assert last is not None
    assert (last.action, last.actor, last.target) == ("memory.record", "contributor", f"memory:{memory.pk}")
    record(team)
    assert written(team.project) == (events + 3, epoch + 2, 1)


def test_recording_the_same_twice_keeps_both(team: Team) -> None:
    first, second = record(team), record(team)
    assert first.pk != second.pk
    assert AgentMemory.objects.count() == 2


def test_recording_again_never_touches_an_approved_row(team: Team) -> None:
    approved = approve(team, record(team))
    again = record(team)
    kept = AgentMemory.objects.get(pk=approved.pk)
    assert state_of(kept) == state_of(approved)
    assert (kept.trust_state, again.trust_state) == ("approved", "pending")


def test_there_is_nothing_to_record_in_an_unknown_project(team: Team) -> None:
    with pytest.raises(NotFound):
        record_memory(project_id=start_run(team).run_id, actor=team.owner, agent_name="Ana", type="update", content="x", now=NOW)  # fmt: skip


# Who an agent is


@pytest.mark.parametrize("spelling", ["José", " josé\t", DECOMPOSED, DECOMPOSED.upper()])
def test_a_spelling_of_an_agent_is_that_agent_and_the_first_spelling_is_shown(
    team: Team, spelling: str
) -> None:
    record(team, agent_name=DECOMPOSED)
    memory = record(team, agent_name=spelling)
    assert memory.agent.name == DECOMPOSED
    assert Agent.objects.count() == 1
    assert Agent.objects.named(spelling).get() == memory.agent


@pytest.mark.parametrize(
    ("first", "other"), [("İpek", "ipek"), ("Ana", "Ana-2"), ("Ana", "Anna"), ("Ana", "An_")]
)
def test_likeness_makes_no_identity(team: Team, first: str, other: str) -> None:
    assert record(team, agent_name=first).agent != record(team, agent_name=other).agent


def test_agents_of_two_projects_share_a_name_and_nothing_else(team: Team) -> None:
    there = MemoryFactory(project=ProjectFactory())
    here = record(team, agent_name=there.agent.name)
    assert here.agent.name == there.agent.name
    assert here.agent != there.agent


@pytest.mark.parametrize("spelling", ["STRASSE", "straße ", "Straße"])
def test_a_run_may_spell_its_own_agent_as_it_likes(team: Team, spelling: str) -> None:
    assert record(team, start_run(team, "Straße"), agent_name=spelling).agent.name == "Straße"


@pytest.mark.parametrize("role", ["worker", "coordinator"])
@pytest.mark.parametrize("name", ["Ben", "Ana2", "An", "Ana\u200b", "coordinator"])
def test_a_run_naming_another_agent_is_refused(team: Team, role: str, name: str) -> None:
    run = start_run(team, role=role)
    before = written(team.project)
    with pytest.raises(Refused) as caught:
        record(team, run, agent_name=name)
    assert caught.value.code == "agent_mismatch"
    assert written(team.project) == before


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_run_that_ended_since_it_was_authenticated_writes_nothing(team: Team, status: str) -> None:
    run = start_run(team)
    memory = record(team, run)
    with change(team.project.pk, team.orchestrator, NOW) as opened:
        finish_run(opened, run.run_id, status)
    before = written(team.project)
    for write in (lambda: record(team, run), lambda: edit(team, memory, run, content="new")):
        with pytest.raises(CredentialRefused) as caught:
            write()
        assert caught.value.code == "run_ended"
    assert written(team.project) == before


# Editing

CHANGES: dict[str, Any] = {
    "type": "core_context",
    "importance": "low",
    "content": "New.",
    "tags": ["cross-team"],
}


@pytest.mark.parametrize("field", CHANGES)
def test_a_change_of_any_field_sends_an_approved_memory_back(team: Team, field: str) -> None:
    memory = approve(team, record(team))
    edited = edit(team, memory, **{field: CHANGES[field]})
    assert (edited.revision, edited.trust_state, edited.approved_by, edited.approved_at) == (
        2,
        "pending",
        "",
        None,
    )
    assert getattr(edited, field) == CHANGES[field]
    last = LedgerEvent.objects.order_by("number").last()
    assert last is not None
    assert (last.action, f'"{field}"' in last.before, f'"{field}"' in last.after) == (
        "memory.edit",
        True,
        True,
    )
    assert AgentMemory.objects.get().cross_team is (field == "tags")


def test_the_answer_knows_at_once_whether_it_crosses(team: Team) -> None:
    memory = record(team, tags="cross-team")
    edited = edit(team, memory, tags=[])
    assert edited.cross_team is False
    assert approve(team, edited).cross_team is False


@pytest.mark.parametrize(
    "same", [{}, {"content": "Text."}, {"type": "learning", "importance": "medium", "tags": ""}]
)
def test_a_change_to_what_is_there_changes_nothing(team: Team, same: dict[str, Any]) -> None:
    memory = approve(team, record(team))
    before = written(team.project)
    assert state_of(edit(team, memory, **same)) == state_of(memory)
    assert written(team.project) == before


def test_an_imported_memory_stays_legacy_however_it_is_edited(team: Team) -> None:
    memory = MemoryFactory(project=team.project, **LEGACY)
    edited = edit(team, memory, content="New.", importance="low", tags="cross-team", type="pattern")
    assert (edited.trust_state, edited.revision, edited.source_kind) == ("legacy", 2, "legacy")


def test_an_edit_of_a_text_that_changed_since_is_stale_and_shows_the_row(team: Team) -> None:
    memory = record(team)
    edit(team, memory, content="Theirs.")
    for revision in (1, 3):
        with pytest.raises(Stale) as caught:
            edit(team, memory, content="Mine.", revision=revision)
        assert (caught.value.code, caught.value.row.content) == ("stale", "Theirs.")
    assert AgentMemory.objects.get().content == "Theirs."


def test_a_retired_memory_cannot_be_edited(team: Team) -> None:
    memory = record(team)
    retire_memory(project_id=team.project.pk, actor=team.owner, memory_id=memory.pk, reason="Old.", now=NOW)
    with pytest.raises(Conflict) as caught:
        edit(team, memory, content="New.")
    assert (caught.value.code, caught.value.row.pk) == ("conflict", memory.pk)


def test_an_edit_under_another_agents_address_finds_nothing(team: Team) -> None:
    memory = record(team)
    record(team, agent_name="Ben")
    for agent_name in ("Ben", "Nobody", "An"):
        with pytest.raises(NotFound):
            edit(team, memory, agent_name=agent_name, content="New.")
    assert edit(team, memory, agent_name=" ANA", content="New.").content == "New."


def test_a_memory_of_another_project_is_as_unknown_as_one_that_is_not_there(team: Team) -> None:
    for memory in (MemoryFactory(project=ProjectFactory()), AgentMemory(pk=999_999, revision=1)):
        with pytest.raises(NotFound) as caught:
            edit(team, memory, content="New.")
        assert caught.value.detail == "Not found."


@pytest.mark.parametrize("role", ["worker", "coordinator"])
def test_a_run_edits_its_own_agents_memory_only(team: Team, role: str) -> None:
    run = start_run(team, role=role)
    assert edit(team, record(team), run, content="New.").content == "New."
    with pytest.raises(Refused) as caught:
        edit(team, record(team, agent_name="Ben"), run, content="New.")
    assert caught.value.code == "agent_mismatch"


def test_an_edit_keeps_the_source_and_the_event_names_the_editor(team: Team) -> None:
    run = start_run(team)
    edited = edit(team, record(team, run), team.owner, content="New.")
    assert edited.source_identity == f"run:{run.run_id}"
    last = LedgerEvent.objects.order_by("number").last()
    assert last is not None
    assert last.actor == "owner"
    assert Run.objects.get().agent == edited.agent


@pytest.mark.parametrize(
    ("field", "value"), [("type", "x"), ("importance", "x"), ("content", " "), ("tags", ["a,b"])]
)
def test_a_wrong_field_of_an_edit_is_named(team: Team, field: str, value: Any) -> None:
    with pytest.raises(Invalid) as caught:
        edit(team, record(team), **{field: value})
    assert list(caught.value.errors) == [field]
