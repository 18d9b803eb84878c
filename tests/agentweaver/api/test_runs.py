"""Runs over HTTP: registration, the credential, completion (SPEC 5, 6 and 7)."""

from __future__ import annotations

from typing import Any

import pytest

from governance.models import RunCredential
from memory.models import Agent, LedgerEvent, Run
from tests.agentweaver.api.conftest import Caller, errors, problem
from tests.conftest import Team


def register(orchestrator: Caller, **fields: Any) -> dict[str, Any]:
    told: dict[str, Any] = orchestrator.post("runs", {"agent_name": "Ana", **fields}).json()
    return told


def test_a_registered_run_is_told_with_a_token_that_is_stored_nowhere(orchestrator: Caller) -> None:
    made = orchestrator.post("runs", {"agent_name": " Ana ", "external_id": "job-1", "charter": "Careful."})
    run = made.json()
    assert (made.status_code, made["Cache-Control"]) == (201, "no-store")
    assert made["Location"].endswith(f"/runs/{run['id']}")
    token = run.pop("token")
    assert token.startswith("awr_")
    assert run.pop("token_expires_at") is not None
    assert orchestrator.get(f"runs/{run['id']}").json() == run
    assert (run["agent_name"], run["role"], run["status"]) == ("Ana", "worker", "running")
    assert Agent.objects.get().charter == "Careful."
    assert not RunCredential.objects.filter(digest=token).exists()
    assert token not in "".join(e.after + e.before for e in LedgerEvent.objects.all())


def test_the_same_external_id_is_the_same_run_with_a_new_token(orchestrator: Caller) -> None:
    first = register(orchestrator, external_id="job-1")
    again = orchestrator.post("runs", {"agent_name": "ANA", "external_id": "job-1"})
    assert (again.status_code, again.json()["id"]) == (200, first["id"])
    assert problem(Caller(orchestrator.base, first["token"]).get()) == (401, "invalid_credential")
    assert Caller(orchestrator.base, again.json()["token"]).get().status_code == 200
    assert Run.objects.count() == 1


def test_an_external_id_of_another_run_or_an_ended_one_is_a_conflict(orchestrator: Caller) -> None:
    run = register(orchestrator, external_id="job-1")
    for other in ({"agent_name": "Ben"}, {"role": "coordinator"}, {"parent_run_id": run["id"]}):
        taken = orchestrator.post("runs", {"agent_name": "Ana", "external_id": "job-1", **other})
        assert problem(taken) == (409, "conflict")
        assert taken.json()["current"]["id"] == run["id"]
    assert Caller(orchestrator.base, run["token"]).get().status_code == 200
    orchestrator.post(f"runs/{run['id']}/complete")
    ended = orchestrator.post("runs", {"agent_name": "Ana", "external_id": "job-1"})
    assert problem(ended) == (409, "conflict")


def test_a_child_is_never_a_coordinator_and_its_parent_is_of_this_project(
    team: Team, orchestrator: Caller
) -> None:
    parent = register(orchestrator)
    child = register(orchestrator, parent_run_id=parent["id"])
    assert (child["parent_run_id"], child["role"]) == (parent["id"], "worker")
    wrong = orchestrator.post(
        "runs", {"agent_name": "A", "role": "coordinator", "parent_run_id": parent["id"]}
    )
    assert errors(wrong).keys() == {"role"}
    for stranger in ("00000000-0000-4000-8000-000000000000", "x", 1, ""):
        assert errors(orchestrator.post("runs", {"agent_name": "A", "parent_run_id": stranger})).keys() == {
            "parent_run_id"
        }
    assert Run.objects.count() == 2


def test_null_means_not_given(orchestrator: Caller) -> None:
    body = {"agent_name": "Ana", "parent_run_id": None, "external_id": None, "charter": None}
    assert [orchestrator.post("runs", body).status_code for _ in range(2)] == [201, 201]


@pytest.mark.parametrize("role", ["owner", "", 1, None])
def test_a_role_is_one_of_two_words(orchestrator: Caller, role: object) -> None:
    assert errors(orchestrator.post("runs", {"agent_name": "Ana", "role": role})).keys() == {"role"}


def test_completion_is_answered_with_the_scribes_report_and_so_is_every_repetition(
    orchestrator: Caller, owner: Caller
) -> None:
    run = register(orchestrator)
    worker = Caller(orchestrator.base, run["token"])
    entry = worker.post(
        "decisions/inbox", {"agent_name": "Ana", "slug": "s", "type": "learning", "content": "C"}
    ).json()
    done = orchestrator.post(f"runs/{run['id']}/complete", {"status": "completed", "summary": "Done."})
    report = done.json()
    assert done.status_code == 200
    assert report.keys() == {"run", "status", "steps", "promoted", "waiting", "session", "exported_files"}
    assert [(row["entry"], row["kind"]) for row in report["promoted"]] == [(entry["id"], "memory")]
    assert orchestrator.post(f"runs/{run['id']}/complete", {"status": "completed"}).json() == report
    other = orchestrator.post(f"runs/{run['id']}/complete", {"status": "failed"})
    assert problem(other) == (409, "conflict")
    assert other.json()["current"]["status"] == "completed"
    assert problem(worker.get()) == (401, "run_ended")
    assert owner.get(f"runs/{run['id']}").json()["summary"] == "Done."


def test_a_completion_without_a_word_is_completed_and_a_running_status_is_none(orchestrator: Caller) -> None:
    run = register(orchestrator)
    for body in ({"status": "running"}, {"status": "done"}, {"end_session": "false"}, {"end_session": 0}):
        assert errors(orchestrator.post(f"runs/{run['id']}/complete", body)).keys() == set(body)
    assert orchestrator("POST", f"runs/{run['id']}/complete").json()["status"] == "completed"


def test_end_session_closes_the_session_and_its_absence_only_summarises(
    orchestrator: Caller, owner: Caller
) -> None:
    owner.post("sessions", {"session_id": "s"})
    first, second = register(orchestrator), register(orchestrator)
    orchestrator.post(f"runs/{first['id']}/complete", {"summary": "One."})
    assert "One." in owner.get("sessions/current").json()["summary"]
    orchestrator.post(f"runs/{second['id']}/complete", {"end_session": True})
    assert problem(owner.get("sessions/current")) == (404, "not_found")
