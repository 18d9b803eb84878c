"""The inbox over HTTP: submit, merge, reject (SPEC 6 and 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memory.actors import VerifiedRun
from memory.models import DecisionInboxEntry
from tests.agentweaver.api.conftest import Caller, errors, problem
from tests.conftest import Team, start_run

PATH = "decisions/inbox"


def entry(**fields: Any) -> dict[str, Any]:
    return {"agent_name": "Ana", "slug": "use-wal", "type": "architectural", "content": "Use WAL.", **fields}


def test_a_new_entry_is_pending_high_and_titled_by_its_slug(contributor: Caller) -> None:
    made = contributor.post(PATH, entry(tags=["DB"]))
    told = made.json()
    assert made.status_code == 201
    assert {k: v for k, v in told.items() if k not in ("id", "created_at", "updated_at")} == {
        "agent_name": "Ana", "slug": "use-wal", "type": "architectural", "title": "use-wal", "content": "Use WAL.",
        "rationale": "", "importance": "high", "tags": ["db"], "status": "pending", "reviewed_by": None,
        "reviewed_at": None, "reason": None, "decision": None, "memory": None, "revision": 1, "source_kind": "human",
        "source_identity": "contributor", "source_run": None,
    }  # fmt: skip
    assert contributor.get(f"{PATH}/{told['id']}").json() == told


def test_the_same_agent_and_source_updates_in_place_and_anyone_else_gets_an_own_slug(
    team: Team, contributor: Caller, as_run: Callable[[VerifiedRun], Caller]
) -> None:
    first = contributor.post(PATH, entry()).json()
    again = contributor.post(PATH, entry(agent_name="ANA", content="Use WAL mode."))
    assert (again.status_code, again.json()["id"], again.json()["revision"]) == (200, first["id"], 2)
    ben = as_run(start_run(team, "Ben"))
    other = ben.post(PATH, entry(agent_name="Ben"))
    assert (other.status_code, other.json()["slug"]) == (201, "use-wal--ben")
    assert ben.post(PATH, entry(agent_name="ben", content="X")).status_code == 200
    assert DecisionInboxEntry.objects.count() == 2


@pytest.mark.parametrize("slug", ["Use-wal", "use_wal", "", " ", "a" * 121, "ü", 1, None])
def test_a_slug_that_is_not_kebab_case_is_refused(contributor: Caller, slug: object) -> None:
    assert errors(contributor.post(PATH, entry(slug=slug))).keys() == {"slug"}


def test_merging_answers_with_the_entry_and_the_row_and_repeats_safely(
    owner: Caller, contributor: Caller, as_run: Callable[[VerifiedRun], Caller], team: Team
) -> None:
    made = contributor.post(PATH, entry()).json()
    merged = owner.post(f"{PATH}/{made['id']}/merge", {"revision": 1, "type": "scope", "tags": "a,b"}).json()
    row = merged["decision_row"]
    assert (merged["status"], merged["reviewed_by"], merged["decision"], merged["memory"], merged["memory_row"]) == (
        "merged", "owner", row["id"], None, None,
    )  # fmt: skip
    assert (row["type"], row["status"], row["trust_state"], row["tags"]) == (
        "scope",
        "active",
        "approved",
        ["a", "b"],
    )
    assert (row["approved_by"], row["source_identity"]) == ("owner", "contributor")
    assert owner.get(f"decisions/{row['id']}").json() == row
    assert owner.post(f"{PATH}/{made['id']}/promote", {"revision": 1}).json() == merged
    late = as_run(start_run(team, "Cleo", role="coordinator")).post(
        f"{PATH}/{made['id']}/merge", {"revision": 1}
    )
    assert problem(late) == (409, "conflict")
    assert late.json()["current"]["reviewed_by"] == "owner"


@pytest.mark.parametrize("type", ["learning", "pattern", "update"])
def test_what_was_learnt_becomes_an_approved_memory(owner: Caller, contributor: Caller, type: str) -> None:
    made = contributor.post(PATH, entry(type=type)).json()
    merged = owner.post(f"{PATH}/{made['id']}/merge", {"revision": 1}).json()
    assert merged["decision_row"] is None
    assert (merged["memory_row"]["type"], merged["memory_row"]["trust_state"]) == (type, "approved")
    assert owner.get(f"agents/Ana/memory/{merged['memory']}").json() == merged["memory_row"]


def test_merging_needs_the_revision_that_was_read(owner: Caller, contributor: Caller) -> None:
    made = contributor.post(PATH, entry()).json()
    contributor.post(PATH, entry(content="Otherwise"))
    assert errors(owner.post(f"{PATH}/{made['id']}/merge", {})).keys() == {"revision"}
    stale = owner.post(f"{PATH}/{made['id']}/merge", {"revision": 1})
    assert problem(stale) == (409, "stale")
    assert stale.json()["current"]["content"] == "Otherwise"


def test_a_rejection_needs_a_reason_that_the_proposer_can_read(
    owner: Caller, team: Team, as_run: Callable[[VerifiedRun], Caller]
) -> None:
    worker = as_run(start_run(team))
    made = worker.post(PATH, entry()).json()
    for reason in ({}, {"reason": ""}, {"reason": " "}, {"reason": 1}, {"reason": "x" * 2_001}):
        assert errors(owner.post(f"{PATH}/{made['id']}/reject", reason)).keys() == {"reason"}
    rejected = owner.post(f"{PATH}/{made['id']}/reject", {"reason": "Too early.", "revision": 1}).json()
    assert worker.get(f"{PATH}/{made['id']}").json() == rejected
    assert (rejected["status"], rejected["reason"], rejected["reviewed_by"]) == (
        "rejected",
        "Too early.",
        "owner",
    )
    again = worker.post(PATH, entry())
    assert problem(again) == (409, "conflict")
    assert again.json()["current"]["reason"] == "Too early."
