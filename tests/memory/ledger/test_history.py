"""A row's past can be told from the ledger alone, and so can who was told it (SPEC 7, history and receipts)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from governance.deciding.decisions import create_decision, edit_decision, supersede_decision
from governance.deciding.entries import merge_entry, reject_entry
from governance.deciding.gate import Corrections
from governance.deciding.memories import approve_memory, retire_memory
from memory.actors import VerifiedRun
from memory.compiling.compiler import Limits
from memory.compiling.receipts import build_for_run
from memory.ledger.changes import state_of, target_of
from memory.ledger.history import Changed, receipts_of, revision_at, revisions, rows_told, told_runs
from memory.models import AgentMemory, Run
from memory.recording import edit_memory, record_memory, submit_entry
from memory.sessions import SessionFields, start_session, update_session
from tests.conftest import NOW, Team, start_run

pytestmark = pytest.mark.django_db


def at(minutes: int):
    return NOW + timedelta(minutes=minutes)


def remember(team: Team, actor=None, content: str = "The lamp turns.", **more) -> AgentMemory:
    given: dict[str, Any] = {"agent_name": "Ana", "type": "learning", "importance": "high", **more}
    return record_memory(
        project_id=team.project.pk, actor=actor or team.contributor, content=content, now=at(1), **given
    )


def told(run: VerifiedRun, minutes: int):
    row = Run.objects.select_related("agent", "project").get(pk=run.run_id)
    return build_for_run(row, Limits(), at(minutes)).receipt


def test_the_ledger_alone_retells_a_memory_who_why_and_on_which_revision(team: Team) -> None:
    run = start_run(team)
    memory = remember(team, run)
    common: dict[str, Any] = {"project_id": team.project.pk, "memory_id": memory.pk}
    edit_memory(**common, actor=run, revision=1, content="The lamp turns twice.", now=at(2))
    approve_memory(**common, actor=team.owner, revision=2, now=at(3))
    retire_memory(**common, actor=team.owner, reason="It stands still now.", now=at(4))
    told = revisions(team.project, target_of(memory))
    assert [(r.at, r.actor, r.action, r.reason, r.revision) for r in told] == [
        (at(1), run.identity, "memory.record", "", 1),
        (at(2), run.identity, "memory.edit", "", 2),
        (at(3), "owner", "memory.approve", "", 2),
        (at(4), "owner", "memory.retire", "It stands still now.", 2),
    ]
    assert told[0].changed == ()
    assert Changed("content", "The lamp turns.", "The lamp turns twice.") in told[1].changed
    assert Changed("trust_state", "pending", "approved") in told[2].changed
    assert [r.values["content"] for r in told] == ["The lamp turns."] + ["The lamp turns twice."] * 3
    memory.refresh_from_db()
    assert told[-1].values == state_of(memory)
    assert all(r.adds_up for r in told)


def test_a_merge_keeps_what_was_proposed_and_what_was_decided(team: Team) -> None:
    entry, _ = submit_entry(
        project_id=team.project.pk, actor=team.contributor, agent_name="Ana", slug="two-lamps", type="architectural",
        content="Use two lamps.", tags=["lamp"], now=at(1),
    )  # fmt: skip
    decision = merge_entry(
        project_id=team.project.pk, actor=team.owner, entry_id=entry.pk, revision=1, now=at(2),
        corrections=Corrections(type="process", tags=["light"]),
    )  # fmt: skip
    [merged] = revisions(team.project, target_of(decision))
    assert (merged.action, merged.actor) == ("decision.merge", "owner")
    assert merged.changed == (
        Changed("tags", ["lamp"], ["light"]),
        Changed("type", "architectural", "process"),
    )
    submitted, reviewed = revisions(team.project, target_of(entry))
    assert submitted.values["type"] == "architectural"
    assert reviewed.values["decision_id"] == decision.pk
    assert (reviewed.values["status"], reviewed.values["reviewed_by"]) == ("merged", "owner")


def test_decisions_rejections_and_sessions_have_a_history_too(team: Team) -> None:
    common: dict[str, Any] = {"project_id": team.project.pk, "actor": team.owner}
    made: dict[str, Any] = {"agent_name": "Ana", "type": "scope", "content": "Only the harbour."}
    first = create_decision(**common, **made, title="Scope", now=at(1))
    second = create_decision(**common, **made, title="Scope again", now=at(2))
    edit_decision(**common, decision_id=first.pk, revision=1, title="The scope", now=at(3))
    supersede_decision(
        **common, decision_id=first.pk, superseded_by=second.pk, reason="Said better.", now=at(4)
    )
    assert [(r.action, r.revision, r.reason) for r in revisions(team.project, target_of(first))] == [
        ("decision.create", 1, ""),
        ("decision.edit", 2, ""),
        ("decision.supersede", 2, "Said better."),
    ]
    entry, _ = submit_entry(
        **common, agent_name="Ana", slug="idea", type="scope", content="The sea too.", now=at(5)
    )
    reject_entry(**common, entry_id=entry.pk, reason="Too wide.", now=at(6))
    assert [(r.action, r.reason) for r in revisions(team.project, target_of(entry))] == [
        ("entry.submit", ""),
        ("entry.reject", "Too wide."),
    ]
    session = start_session(**common, session_id="s1", now=at(7))
    update_session(
        **common,
        session_id="s1",
        fields=SessionFields(summary="Half done.", active_issues=["fog"]),
        now=at(8),
    )
    told = revisions(team.project, target_of(session))
    assert told[1].changed == (
        Changed("active_issues", [], ["fog"]),
        Changed("revision", 1, 2),
        Changed("summary", "", "Half done."),
    )


def test_a_history_is_of_one_project_and_one_row(team: Team) -> None:
    memory = remember(team)
    assert revisions(team.project, f"memory:{memory.pk}0") == []
    assert revisions(team.project, f"decision:{memory.pk}") == []
    first = revision_at(team.project, target_of(memory), 1)
    assert first is not None
    assert first.values["content"] == "The lamp turns."
    assert revision_at(team.project, target_of(memory), 9) is None


def test_receipts_name_every_telling_with_its_revision(team: Team) -> None:
    run, other = start_run(team), start_run(team, "Bo")
    memory, unrelated = remember(team, run), remember(team, run, "Fog at noon.")
    first, second = told(run, 2), told(run, 3)
    edit_memory(
        project_id=team.project.pk,
        actor=run,
        memory_id=memory.pk,
        revision=1,
        content="Two lamps.",
        now=at(4),
    )
    third = told(run, 5)
    told(other, 6)
    receipts = receipts_of(team.project, "memory", memory.pk)
    assert [(r.pk, r.told_revision, r.told_layer) for r in receipts] == [
        (third.pk, 2, 3),
        (second.pk, 1, 3),
        (first.pk, 1, 3),
    ]
    assert {row.memory_id for row in rows_told(first)} == {memory.pk, unrelated.pk}
    [only] = told_runs(team.project, "memory", memory.pk).as_json()["runs"]
    assert only == {
        "run": str(run.run_id), "agent_name": "Ana", "role": "worker", "status": "running", "times": 3,
        "first_at": "2026-12-01T09:02:00.000000Z", "last_at": "2026-12-01T09:05:00.000000Z", "revisions": [1, 2],
    }  # fmt: skip


def test_the_runs_told_are_counted_beyond_the_limit_and_queries_do_not_grow(team: Team) -> None:
    decision = create_decision(
        project_id=team.project.pk, actor=team.owner, agent_name="Ana", type="scope", title="Scope", content="Harbour.",
        now=at(1),
    )  # fmt: skip
    runs = [start_run(team, name) for name in ("Ana", "Bo", "Cy", "Di")]
    for minute, run in enumerate(runs, start=2):
        told(run, minute)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        answer = told_runs(team.project, "decision", decision.pk, limit=2)
    assert len(queries) == 3
    assert (answer.total, [run.run_id for run in answer.runs]) == (4, [runs[3].run_id, runs[2].run_id])
    assert told_runs(team.project, "decision", decision.pk + 1).as_json() == {"total": 0, "runs": []}


def test_only_what_is_compiled_can_have_been_told(team: Team) -> None:
    with pytest.raises(ValueError, match="Only a decision, memory, session"):
        receipts_of(team.project, "entry", 1)
