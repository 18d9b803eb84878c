"""Memories over HTTP: record, edit, approve, retire, history (SPEC 5, 6 and 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memory.actors import VerifiedRun
from memory.models import Agent, AgentMemory
from tests.agentweaver.api.conftest import Caller, problem
from tests.conftest import Team, start_run

PATH = "agents/Ana/memory"


def record(caller: Caller, path: str = PATH, **fields: Any) -> dict[str, Any]:
    response = caller.post(path, {"type": "learning", "content": "C", **fields})
    assert response.status_code == 201, response.content
    told: dict[str, Any] = response.json()
    return told


def test_a_memory_starts_pending_with_the_provenance_of_whoever_asked(
    team: Team, contributor: Caller, as_run: Callable[[VerifiedRun], Caller]
) -> None:
    by_person = record(contributor, importance="high", tags=" Db, cross-team,db ")
    assert {k: v for k, v in by_person.items() if k not in ("id", "created_at", "updated_at")} == {
        "agent_name": "Ana", "type": "learning", "importance": "high", "content": "C", "tags": ["db", "cross-team"],
        "session_id": None, "revision": 1, "status": "active", "source_kind": "human",
        "source_identity": "contributor", "source_run": None, "trust_state": "pending", "approved_by": None,
        "approved_at": None, "retired_at": None, "retired_by": None, "retire_reason": None,
    }  # fmt: skip
    run = start_run(team)
    by_run = record(as_run(run), "agents/ANA%20/memory")
    assert (by_run["source_kind"], by_run["source_identity"], by_run["source_run"]) == (
        "run", f"run:{run.run_id}", str(run.run_id),
    )  # fmt: skip
    assert (by_run["agent_name"], by_run["importance"]) == ("Ana", "medium")


def test_a_run_writes_as_its_own_agent_under_any_spelling_and_no_other(
    team: Team, as_run: Callable[[VerifiedRun], Caller], contributor: Caller
) -> None:
    worker = as_run(start_run(team, "Élodie"))
    for spelling in ("E%CC%81lodie", "%20%C3%89LODIE%20", "élodie"):
        assert record(worker, f"agents/{spelling}/memory")["agent_name"] == "Élodie"
    refused = worker.post("agents/Elodie/memory", {"type": "nonsense"})
    assert problem(refused) == (403, "agent_mismatch")
    of_ana = record(contributor)
    assert problem(worker.patch(f"{PATH}/{of_ana['id']}", {"revision": 1, "content": "D"})) == (
        403,
        "agent_mismatch",
    )
    under_own_name = worker.patch(f"agents/Élodie/memory/{of_ana['id']}", {"revision": 1, "content": "D"})
    assert problem(under_own_name) == (404, "not_found")
    assert AgentMemory.objects.get(pk=of_ana["id"]).content == "C"
    assert Agent.objects.count() == 2


def test_a_memory_belongs_to_a_session_that_exists(contributor: Caller) -> None:
    contributor.post("sessions", {"session_id": "s-1"})
    assert record(contributor, session_id="s-1")["session_id"] == "s-1"
    assert record(contributor, session_id=None)["session_id"] is None


def test_an_edit_sends_an_approved_memory_back_to_pending(owner: Caller) -> None:
    memory = record(owner)
    approved = owner.post(f"{PATH}/{memory['id']}/approve", {"revision": 1, "importance": "high"}).json()
    assert (approved["trust_state"], approved["approved_by"], approved["revision"]) == (
        "approved",
        "owner",
        2,
    )
    same = owner.patch(f"{PATH}/{memory['id']}", {"revision": 2, "content": "C", "tags": []}).json()
    assert same == approved
    edited = owner.patch(f"{PATH}/{memory['id']}", {"revision": 2, "tags": ["a"]}).json()
    assert (edited["trust_state"], edited["approved_by"], edited["revision"]) == ("pending", None, 3)


def test_an_approval_is_bound_to_the_revision_that_was_read(owner: Caller) -> None:
    memory = record(owner)
    owner.patch(f"{PATH}/{memory['id']}", {"revision": 1, "content": "Now otherwise"})
    stale = owner.post(f"{PATH}/{memory['id']}/promote", {"revision": 1})
    assert problem(stale) == (409, "stale")
    assert (stale.json()["current"]["content"], stale.json()["current"]["revision"]) == ("Now otherwise", 2)
    for missing in (
        {},
        {"revision": "2"},
        {"revision": 2.0},
        {"revision": True},
        {"revision": 0},
        {"revision": 2**40},
    ):
        assert problem(owner.post(f"{PATH}/{memory['id']}/approve", missing)) == (400, "invalid")
    first = owner.post(f"{PATH}/{memory['id']}/approve", {"revision": 2}).json()
    again = owner.post(f"{PATH}/{memory['id']}/promote", {"revision": 2}).json()
    assert first == again


def test_a_retired_memory_says_who_was_told_it_and_changes_no_more(
    team: Team, owner: Caller, orchestrator: Caller
) -> None:
    memory = record(owner, importance="high")
    run = start_run(team)
    orchestrator.post(f"runs/{run.run_id}/context")
    retired = owner.post(f"{PATH}/{memory['id']}/retire", {"reason": "wrong"}).json()
    assert (retired["status"], retired["retired_by"], retired["retire_reason"]) == (
        "retired",
        "owner",
        "wrong",
    )
    assert [told["run"] for told in retired["told_runs"]["runs"]] == [str(run.run_id)]
    conflict = owner.patch(f"{PATH}/{memory['id']}", {"revision": 1, "content": "D"})
    assert problem(conflict) == (409, "conflict")
    assert conflict.json()["current"]["status"] == "retired"
    assert problem(owner.post(f"{PATH}/{memory['id']}/approve", {"revision": 1})) == (409, "conflict")


def test_a_history_tells_every_step_oldest_first(owner: Caller) -> None:
    memory = record(owner)
    owner.patch(f"{PATH}/{memory['id']}", {"revision": 1, "content": "D"})
    owner.post(f"{PATH}/{memory['id']}/approve", {"revision": 2})
    told = owner.get(f"{PATH}/{memory['id']}/history").json()
    assert [(row["action"], row["revision"], row["actor"], row["adds_up"]) for row in told["items"]] == [
        ("memory.record", 1, "owner", True), ("memory.edit", 2, "owner", True), ("memory.approve", 2, "owner", True),
    ]  # fmt: skip
    assert told["items"][1]["changed"]["content"] == {"before": "C", "after": "D"}
    assert owner.get(f"{PATH}/{memory['id']}/history?page=2&page_size=2").json()["items"] == told["items"][2:]


def test_reading_an_agent_nobody_named_is_an_empty_list(owner: Caller) -> None:
    assert owner.get("agents/Nobody/memory").json()["total_count"] == 0
    assert Agent.objects.count() == 0
