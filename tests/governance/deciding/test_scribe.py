"""What follows a run's end: exact selection, the report, retries (SPEC 6, Scribe and Coordinator finalisation)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import Max

from governance.deciding import scribe
from governance.deciding.entries import promote, reject_entry
from governance.deciding.scribe import Exported, complete_run, retry_scribe
from governance.models import ScribeReport
from memory.actors import Human, VerifiedRun
from memory.enums import EntryStatus, RunStatus, TrustState
from memory.errors import Conflict, NotFound, Refused
from memory.ledger.verification import verify
from memory.models import AgentMemory, Decision, DecisionInboxEntry, LedgerEvent, Run, SessionContext
from memory.recording import submit_entry
from memory.sessions import MAX_OUTCOMES, SessionFields, start_session
from memory.values import MAX_TEXT
from tests.conftest import NOW, Team, start_run

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(hours=1)


def propose(team: Team, actor: Human | VerifiedRun, slug: str, type: str = "learning", **more: Any) -> int:
    agent = more.pop("agent_name", getattr(actor, "agent_name", "Ana"))
    entry, _ = submit_entry(
        project_id=team.project.pk, actor=actor, agent_name=agent, slug=slug, type=type, content=f"Text of {slug}.",
        now=more.pop("now", NOW), **more,
    )  # fmt: skip
    return entry.pk


def complete(team: Team, run: VerifiedRun, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"status": "completed", "actor": team.orchestrator, "now": LATER, **more}
    return complete_run(project_id=team.project.pk, run_id=run.run_id, **given).as_json()


def states(report: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {step["name"]: (step["state"], step["code"]) for step in report["steps"]}


def verified(team: Team) -> bool:
    return verify(team.project).valid


def test_findings_of_the_completed_run_are_promoted_and_the_rest_waits(team: Team) -> None:
    run = start_run(team)
    found = [propose(team, run, slug, slug) for slug in ("learning", "pattern", "update")]
    left = [propose(team, run, slug, slug) for slug in ("architectural", "scope", "process", "technical")]
    report = complete(team, run, summary="Fixed the lamp.")
    memories = AgentMemory.objects.order_by("pk")
    assert [(m.type, m.trust_state, m.approved_by, m.agent.name, m.source_run_id) for m in memories] == [
        (kind, TrustState.APPROVED, f"scribe:{run.run_id}", "Ana", run.run_id)
        for kind in ("learning", "pattern", "update")
    ]
    assert [(p["entry"], p["kind"], p["id"]) for p in report["promoted"]] == [
        (entry, "memory", memory.pk) for entry, memory in zip(found, memories, strict=True)
    ]
    assert [(w["entry"], w["reason"]) for w in report["waiting"]] == [(pk, "decider_required") for pk in left]
    assert states(report) == {
        "promote": ("done", ""), "finalise": ("skipped", "not_a_coordinator"),
        "session": ("skipped", "no_open_session"), "export": ("skipped", "no_workspace"),
    }  # fmt: skip
    assert not Decision.objects.exists()
    assert verified(team)


def test_only_entries_of_this_run_and_its_agent_are_taken(team: Team) -> None:
    run, twin = start_run(team), start_run(team)
    propose(team, twin, "of-the-twin")
    propose(team, team.contributor, "of-a-person", agent_name="Ana")
    propose(team, start_run(team, "Bo"), "of-bo")
    mine = propose(team, run, "mine")
    report = complete(team, run)
    assert [p["entry"] for p in report["promoted"]] == [mine]
    assert report["waiting"] == []
    pending = DecisionInboxEntry.objects.pending().order_by("pk")
    assert [entry.slug for entry in pending] == ["of-the-twin", "of-a-person", "of-bo"]


def test_an_entry_from_before_the_start_stays_and_says_why(team: Team) -> None:
    run = start_run(team)
    early = propose(team, run, "early", now=NOW - timedelta(seconds=1))
    report = complete(team, run)
    assert report["promoted"] == []
    assert report["waiting"] == [
        {"entry": early, "slug": "early", "type": "learning", "reason": "outside_the_run"}
    ]


def test_a_run_ends_no_earlier_than_what_it_proposed(team: Team) -> None:
    """The completing server's clock is behind, or its request waited for the lock while the entry was written."""
    run = start_run(team)
    entry = propose(team, run, "last-second", now=LATER + timedelta(seconds=2))
    report = complete(team, run)
    assert [p["entry"] for p in report["promoted"]] == [entry]
    assert Run.objects.get(pk=run.run_id).ended_at == LATER + timedelta(seconds=2)


def test_a_cross_team_tag_stays_a_request(team: Team) -> None:
    run = start_run(team)
    propose(team, run, "for-all", tags=["cross-team"])
    [promoted] = complete(team, run)["promoted"]
    assert promoted["cross_team_requested"] is True
    assert list(AgentMemory.objects.cross_team_requests().values_list("pk", flat=True)) == [promoted["id"]]


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_run_that_did_not_complete_promotes_nothing_and_says_so(team: Team, status: str) -> None:
    start_session(project_id=team.project.pk, actor=team.owner, session_id="s", now=NOW)
    run = start_run(team, role="coordinator")
    entry = propose(team, run, "lesson")
    report = complete(team, run, status=status, end_session=True)
    assert set(states(report).values()) == {("skipped", f"run_{status}")}
    assert report["status"] == status
    assert report["waiting"] == [
        {"entry": entry, "slug": "lesson", "type": "learning", "reason": f"run_{status}"}
    ]
    assert not AgentMemory.objects.exists()
    assert SessionContext.objects.get().ended_at is None


def test_a_child_run_promotes_nothing_nor_does_its_parent_for_it(team: Team) -> None:
    parent = start_run(team)
    child = start_run(team, parent=Run.objects.get(pk=parent.run_id))
    propose(team, child, "of-the-child")
    report = complete(team, child)
    assert set(states(report).values()) == {("skipped", "child_run")}
    assert [w["reason"] for w in report["waiting"]] == ["child_run"]
    assert complete(team, parent)["promoted"] == []
    assert not AgentMemory.objects.exists()


# Coordinator finalisation


def test_a_coordinator_finalises_its_own_binding_entries_and_nobody_elses(team: Team) -> None:
    run = start_run(team, "Cora", role="coordinator")
    mine = [propose(team, run, slug, slug) for slug in ("architectural", "scope")]
    kept = [propose(team, run, slug, slug) for slug in ("process", "technical")]
    learnt = propose(team, run, "learning")
    propose(team, start_run(team, "Bo"), "of-bo", "scope")
    propose(team, team.owner, "of-a-person", "scope", agent_name="Cora")
    propose(team, start_run(team, "Cora", role="coordinator"), "of-another-cora", "scope")
    report = complete(team, run)
    assert states(report)["finalise"] == ("done", "")
    assert [(p["entry"], p["kind"], p["approved_by"]) for p in report["promoted"]] == [
        (learnt, "memory", f"scribe:{run.run_id}"),
        *((entry, "decision", run.identity) for entry in mine),
    ]
    assert [(w["entry"], w["reason"]) for w in report["waiting"]] == [(pk, "decider_required") for pk in kept]
    decisions = Decision.objects.order_by("pk")
    assert [(d.status, d.trust_state, d.approved_by, d.source_run_id) for d in decisions] == [
        ("active", TrustState.APPROVED, run.identity, run.run_id)
    ] * 2
    assert verified(team)


def test_a_worker_called_coordinator_finalises_nothing(team: Team) -> None:
    run = start_run(team, "coordinator")
    entry = propose(team, run, "take-over", "scope")
    report = complete(team, run)
    assert states(report)["finalise"] == ("skipped", "not_a_coordinator")
    assert [w["entry"] for w in report["waiting"]] == [entry]
    assert not Decision.objects.exists()


# The open session


def test_the_outcome_line_goes_to_the_open_session(team: Team) -> None:
    fields = SessionFields(summary="We look at the lamp.")
    start_session(project_id=team.project.pk, actor=team.owner, session_id="s", fields=fields, now=NOW)
    run = start_run(team)
    propose(team, run, "one")
    propose(team, run, "two", "scope")
    report = complete(team, run, summary="Oiled\n\nthe  hinge.")
    session = SessionContext.objects.get()
    assert session.summary == (
        f"We look at the lamp.\n[run {run.run_id}] Ana: Oiled the hinge. Promoted 1, waiting 1."
    )
    assert session.ended_at is None
    assert report["session"] == {"session_id": "s", "ended": False}
    event = LedgerEvent.objects.get(action="session.update")
    assert event.actor == f"scribe:{run.run_id}"


def test_the_session_is_closed_after_the_line_when_asked(team: Team) -> None:
    start_session(project_id=team.project.pk, actor=team.owner, session_id="s", now=NOW)
    run = start_run(team)
    report = complete(team, run, end_session=True)
    session = SessionContext.objects.get()
    assert session.ended_at == LATER
    assert session.summary.endswith("Promoted 0, waiting 0.")
    assert report["session"] == {"session_id": "s", "ended": True}


def test_old_outcome_lines_make_room_but_what_people_wrote_stays(team: Team) -> None:
    fields = SessionFields(summary="Written by a person.\n[run of luck] Also a person's line.")
    start_session(project_id=team.project.pk, actor=team.owner, session_id="s", fields=fields, now=NOW)
    runs = [start_run(team) for _ in range(20)]
    for run in runs:
        complete(team, run, summary="x" * 600)
    lines = SessionContext.objects.get().summary.split("\n")
    assert lines[:2] == ["Written by a person.", "[run of luck] Also a person's line."]
    outcomes = lines[2:]
    assert sum(map(len, outcomes)) <= MAX_OUTCOMES
    newest = [str(run.run_id) for run in runs[-len(outcomes) :]]
    assert [line[5:41] for line in outcomes] == newest
    assert len(outcomes) > 10


def test_a_full_session_fails_that_step_alone_and_can_be_retried(team: Team) -> None:
    common: dict[str, Any] = {"project_id": team.project.pk, "actor": team.owner}
    fields = SessionFields(summary="x" * MAX_TEXT)
    start_session(**common, session_id="s", fields=fields, now=NOW)
    run = start_run(team)
    propose(team, run, "lesson")
    report = complete(team, run, end_session=True)
    assert states(report)["session"] == ("failed", "session_full")
    assert len(report["promoted"]) == 1
    start_session(**common, session_id="t", now=LATER)
    again = complete(team, run)
    assert states(again)["session"] == ("done", "")
    assert again["session"] == {"session_id": "t", "ended": True}
    assert verified(team)


# Failures, repetition, retries


def broken(*_: Any) -> Any:
    raise RuntimeError("the password is swordfish")


def test_repeating_a_completion_changes_nothing_and_answers_alike(team: Team) -> None:
    start_session(project_id=team.project.pk, actor=team.owner, session_id="s", now=NOW)
    run = start_run(team)
    propose(team, run, "lesson")
    first = complete(team, run, summary="Done.")
    events = LedgerEvent.objects.aggregate(last=Max("number"))
    again = complete(team, run, summary="Done twice?", end_session=True, now=LATER + timedelta(days=1))
    assert again == first
    assert LedgerEvent.objects.aggregate(last=Max("number")) == events
    assert Run.objects.get(pk=run.run_id).summary == "Done."


def test_another_status_is_a_conflict_with_the_run(team: Team) -> None:
    run = start_run(team)
    complete(team, run)
    with pytest.raises(Conflict) as raised:
        complete(team, run, status="failed")
    assert (raised.value.row.pk, raised.value.row.status) == (run.run_id, RunStatus.COMPLETED)


def test_a_failed_promotion_is_kept_shown_and_retried(team: Team, monkeypatch, caplog) -> None:
    start_session(project_id=team.project.pk, actor=team.owner, session_id="s", now=NOW)
    run = start_run(team)
    entries = [propose(team, run, slug) for slug in ("one", "two")]
    real, seen = promote, []

    def second_fails(opened, entry, corrected):
        seen.append(entry.pk)
        return real(opened, entry, corrected) if len(seen) == 1 else broken()

    monkeypatch.setattr(scribe, "promote", second_fails)
    report = complete(team, run)
    assert report["status"] == RunStatus.COMPLETED == Run.objects.get(pk=run.run_id).status
    assert states(report) == {
        "promote": ("failed", "promote_failed"), "finalise": ("skipped", "not_a_coordinator"),
        "session": ("pending", "waits"), "export": ("skipped", "no_workspace"),
    }  # fmt: skip
    assert "swordfish" not in str(report)
    assert "swordfish" in caplog.text
    assert [w["reason"] for w in report["waiting"]] == ["step_failed"] * 2
    assert not AgentMemory.objects.exists()
    assert verified(team)
    monkeypatch.setattr(scribe, "promote", real)
    retried = retry_scribe(
        project_id=team.project.pk, actor=team.owner, run_id=run.run_id, now=LATER
    ).as_json()
    assert [p["entry"] for p in retried["promoted"]] == entries
    assert states(retried)["session"] == ("done", "")
    assert retried == complete(team, run)
    assert AgentMemory.objects.count() == 2
    assert verified(team)


def test_a_failure_of_the_whole_transaction_is_kept_too(team: Team, monkeypatch, caplog) -> None:
    run = start_run(team)
    propose(team, run, "lesson")
    with monkeypatch.context() as patched:
        patched.setattr(scribe, "_close_report", broken)
        report = complete(team, run)
    assert states(report)["promote"] == ("failed", "promote_failed")
    assert states(report)["session"] == ("failed", "session_failed")
    assert not AgentMemory.objects.exists()
    assert len(complete(team, run)["promoted"]) == 1
    assert verified(team)


def test_an_export_that_fails_is_retried_alone(team: Team, caplog) -> None:
    run = start_run(team)
    propose(team, run, "lesson")
    report = complete(team, run, exporter=broken)
    assert states(report)["export"] == ("failed", "export_failed")
    assert (len(report["promoted"]), report["exported_files"]) == (1, None)
    events = LedgerEvent.objects.count()
    again = complete(team, run, exporter=lambda project, now: Exported(files=7))
    assert (states(again)["export"], again["exported_files"]) == (("done", ""), 7)
    assert complete(team, run, exporter=broken) == again
    assert LedgerEvent.objects.count() == events


@pytest.mark.django_db(transaction=True)
def test_the_export_sees_what_was_promoted_and_runs_outside_the_transaction(team: Team) -> None:
    seen = []
    run = start_run(team)
    propose(team, run, "lesson")

    def exporter(project, now):
        seen.append((connection.in_atomic_block, project.pk, AgentMemory.objects.count()))
        return Exported(files=1)

    complete(team, run, exporter=exporter)
    assert seen == [(False, team.project.pk, 1)]


def test_the_mirror_is_refreshed_in_the_workspace(team: Team, settings, tmp_path) -> None:
    settings.AGENTWEAVER_WORKSPACE_ROOT = str(tmp_path)
    run = start_run(team)
    propose(team, run, "lesson")
    report = complete(team, run)
    assert states(report)["export"] == ("done", "")
    written = [file for file in (tmp_path / "lighthouse").rglob("*") if file.suffix == ".md"]
    assert report["exported_files"] == len(written) > 0
    assert "Text of lesson." in " ".join(file.read_text() for file in written)


def test_an_unwritable_workspace_fails_the_export_and_nothing_else(
    team: Team, settings, tmp_path, caplog
) -> None:
    settings.AGENTWEAVER_WORKSPACE_ROOT = str(tmp_path / "not-there")
    run = start_run(team)
    propose(team, run, "lesson")
    report = complete(team, run)
    assert states(report)["export"][0] == "failed"
    assert str(tmp_path) not in str(report)
    assert (report["status"], len(report["promoted"])) == ("completed", 1)
    (tmp_path / "not-there").mkdir()
    assert states(complete(team, run))["export"] == ("done", "")


def test_files_are_written_again_when_a_retry_promoted_something(team: Team, monkeypatch, caplog) -> None:
    run = start_run(team)
    propose(team, run, "lesson")
    with monkeypatch.context() as patched:
        patched.setattr(scribe, "promote", broken)
        first = complete(team, run, exporter=lambda project, now: Exported(files=1))
    assert first["exported_files"] == 1
    assert complete(team, run, exporter=lambda project, now: Exported(files=2))["exported_files"] == 2


def test_a_process_killed_after_the_end_leaves_a_report_that_repeating_finishes(
    team: Team, monkeypatch
) -> None:
    class KilledError(BaseException):
        pass

    def kill(*_: Any) -> None:
        raise KilledError

    run = start_run(team)
    propose(team, run, "lesson")
    with monkeypatch.context() as patched:
        patched.setattr(scribe, "_carry_out", kill)
        with pytest.raises(KilledError):
            complete(team, run)
    stored = ScribeReport.objects.select_related("run").get(run=run.run_id)
    assert stored.has_failed
    assert states(stored.as_json())["promote"] == ("pending", "not_carried_out")
    report = complete(team, run)
    assert (len(report["promoted"]), states(report)["promote"]) == (1, ("done", ""))
    assert not ScribeReport.objects.get(run=run.run_id).has_failed


def test_the_ledger_tells_what_the_scribe_did(team: Team) -> None:
    run = start_run(team)
    entry = propose(team, run, "lesson")
    complete(team, run)
    events = LedgerEvent.objects.filter(actor=f"scribe:{run.run_id}").order_by("number")
    memory = AgentMemory.objects.get()
    assert [(e.action, e.target) for e in events] == [
        ("memory.merge", f"memory:{memory.pk}"),
        ("entry.merge", f"entry:{entry}"),
        ("run.scribe", f"run:{run.run_id}"),
    ]


# Who may


@pytest.mark.parametrize("name", ["contributor", "viewer"])
def test_a_member_without_the_right_completes_nothing(team: Team, name: str) -> None:
    run = start_run(team)
    with pytest.raises(Refused) as raised:
        complete(team, run, actor=getattr(team, name))
    assert raised.value.code == "role_required"
    assert Run.objects.get(pk=run.run_id).is_running


@pytest.mark.parametrize("role", ["worker", "coordinator"])
def test_no_run_completes_itself(team: Team, role: str) -> None:
    run = start_run(team, role=role)
    with pytest.raises(Refused):
        complete(team, run, actor=run)
    assert Run.objects.get(pk=run.run_id).is_running


def test_strangers_and_unknown_runs_are_not_found(team: Team) -> None:
    run = start_run(team)
    with pytest.raises(NotFound):
        complete(team, run, actor=team.stranger)
    with pytest.raises(NotFound):
        complete_run(
            project_id=team.project.pk, actor=team.owner, run_id=team.project.pk, status="completed", now=NOW
        )


def test_a_running_run_has_nothing_to_retry(team: Team) -> None:
    run = start_run(team)
    with pytest.raises(Conflict):
        retry_scribe(project_id=team.project.pk, actor=team.owner, run_id=run.run_id, now=NOW)
    with pytest.raises(Refused):
        retry_scribe(project_id=team.project.pk, actor=team.viewer, run_id=run.run_id, now=NOW)


def test_an_entry_decided_by_a_person_before_the_end_is_left_alone(team: Team) -> None:
    run = start_run(team)
    entry = propose(team, run, "lesson")
    reject_entry(project_id=team.project.pk, actor=team.owner, entry_id=entry, reason="No.", now=NOW)
    report = complete(team, run)
    assert (report["promoted"], report["waiting"]) == ([], [])
    assert DecisionInboxEntry.objects.get(pk=entry).status == EntryStatus.REJECTED
