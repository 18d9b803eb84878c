"""Decisions over HTTP: create, edit, approve, supersede, archive, history (SPEC 6 and 7)."""

from __future__ import annotations

from typing import Any

from memory.models import Decision
from tests.agentweaver.api.conftest import Caller, errors, problem
from tests.conftest import Team


def create(owner: Caller, **fields: Any) -> dict[str, Any]:
    body = {"agent_name": "Ana", "type": "scope", "title": "WAL", "content": "Use WAL.", **fields}
    made = owner.post("decisions", body)
    assert made.status_code == 201, made.content
    told: dict[str, Any] = made.json()
    return told


def test_a_decision_is_active_and_approved_by_whoever_makes_it(owner: Caller) -> None:
    told = create(owner, rationale="Fast.", tags="db")
    assert {k: v for k, v in told.items() if k not in ("id", "created_at", "updated_at", "approved_at")} == {
        "agent_name": "Ana", "type": "scope", "status": "active", "title": "WAL", "content": "Use WAL.",
        "rationale": "Fast.", "tags": ["db"], "superseded_by": None, "revision": 1, "source_kind": "human",
        "source_identity": "owner", "source_run": None, "trust_state": "approved", "approved_by": "owner",
    }  # fmt: skip
    assert told["approved_at"].endswith("Z")
    assert owner.get(f"decisions/{told['id']}").json() == told


def test_an_edit_needs_its_revision_and_status_changes_only_through_the_verbs(owner: Caller) -> None:
    told = create(owner)
    assert errors(owner.patch(f"decisions/{told['id']}", {"content": "D"})).keys() == {"revision"}
    assert errors(owner.patch(f"decisions/{told['id']}", {"revision": 1, "status": "archived"})).keys() == {
        "status"
    }
    edited = owner.patch(f"decisions/{told['id']}", {"revision": 1, "content": "D", "title": " T "}).json()
    assert (edited["content"], edited["title"], edited["revision"]) == ("D", "T", 2)
    assert problem(owner.patch(f"decisions/{told['id']}", {"revision": 1, "content": "E"})) == (409, "stale")


def test_a_title_is_one_line_of_at_most_three_hundred_characters(owner: Caller) -> None:
    body = {"agent_name": "Ana", "type": "scope", "content": "C"}
    for title in ("", " ", "a\nb", "x" * 301, 1, None):
        assert errors(owner.post("decisions", {**body, "title": title})).keys() == {"title"}


def test_a_legacy_decision_is_approved_with_a_type_at_the_revision_that_was_read(
    team: Team, owner: Caller
) -> None:
    told = create(owner, type="technical")
    Decision.objects.filter(pk=told["id"]).update(
        trust_state="legacy", source_kind="legacy", approved_by="", approved_at=None
    )
    assert problem(owner.post(f"decisions/{told['id']}/approve", {"revision": 2})) == (409, "stale")
    assert errors(
        owner.post(f"decisions/{told['id']}/approve", {"revision": 1, "importance": "high"})
    ).keys() == {"importance"}
    approved = owner.post(f"decisions/{told['id']}/approve", {"revision": 1, "type": "scope"}).json()
    assert (approved["trust_state"], approved["type"], approved["revision"]) == ("approved", "scope", 2)
    assert owner.post(f"decisions/{told['id']}/approve", {"revision": 1, "type": "scope"}).json() == approved


def test_supersession_needs_an_active_successor_of_this_project(owner: Caller) -> None:
    old, new = create(owner), create(owner, title="New")
    path = f"decisions/{old['id']}/supersede"
    for successor in (old["id"], 999_999):
        assert errors(owner.post(path, {"superseded_by": successor, "reason": "r"})).keys() == {
            "superseded_by"
        }
    for wrong in ("1", True, 1.0, None, 0, 2**70):
        assert errors(owner.post(path, {"superseded_by": wrong, "reason": "r"})).keys() == {"superseded_by"}
    done = owner.post(path, {"superseded_by": new["id"], "reason": "r"}).json()
    assert (done["status"], done["superseded_by"], done["told_runs"]["total"]) == ("superseded", new["id"], 0)
    circle = owner.post(f"decisions/{new['id']}/supersede", {"superseded_by": old["id"], "reason": "r"})
    assert problem(circle) == (409, "conflict")
    assert circle.json()["current"]["id"] == old["id"]


def test_an_archived_decision_is_decided_no_more(owner: Caller) -> None:
    told = create(owner)
    archived = owner.post(f"decisions/{told['id']}/archive", {"reason": "Over."}).json()
    assert archived["status"] == "archived"
    for path, body in (
        ("archive", {"reason": "again"}), ("approve", {"revision": 1}), ("supersede", {"superseded_by": 1, "reason": "r"}),
    ):  # fmt: skip
        refused = owner.post(f"decisions/{told['id']}/{path}", body)
        assert problem(refused) == (409, "conflict")
        assert refused.json()["current"]["status"] == "archived"
    history = owner.get(f"decisions/{told['id']}/history").json()["items"]
    assert [(row["action"], row["reason"]) for row in history] == [
        ("decision.create", ""),
        ("decision.archive", "Over."),
    ]
