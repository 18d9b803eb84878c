"""Every list: its order, its filters, its pages, and the same number of statements for one row and for three."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext

from governance.deciding.decisions import create_decision, edit_decision
from governance.deciding.projects import create_project
from governance.models import User
from governance.people import policies
from memory import recording, sessions
from memory.models import ContextReceipt
from tests.agentweaver.api.conftest import Caller, base_of, errors, token_of
from tests.conftest import NOW, Team, start_run

Make = Callable[[Team, int], Any]


def _by(team: Team, number: int) -> dict[str, Any]:
    return {"project_id": team.project.pk, "actor": team.owner, "now": NOW + timedelta(seconds=number)}


def _project(team: Team, number: int) -> Any:
    return create_project(actor=team.owner, name="N", slug=f"n-{number}", now=NOW + timedelta(seconds=number))


def _member(team: Team, number: int) -> Any:
    User.objects.create_user(f"u{number}")
    return policies.grant(**_by(team, number), username=f"u{number}", role="viewer")


def _memory(team: Team, number: int, **fields: Any) -> Any:
    given = {"agent_name": "Ana", "type": "learning", "content": f"C{number}", "tags": ["a"], **fields}
    return recording.record_memory(**_by(team, number), **given)


def _entry(team: Team, number: int, **fields: Any) -> Any:
    given = {"agent_name": "Ana", "type": "scope", "content": f"C{number}", **fields}
    return recording.submit_entry(**_by(team, number), slug=f"s-{number}", **given)[0]


def _decision(team: Team, number: int, **fields: Any) -> Any:
    given = {"agent_name": "Ana", "type": "scope", "title": f"T{number}", "content": "C", **fields}
    return create_decision(**_by(team, number), **given)


def _session(team: Team, number: int) -> Any:
    return sessions.start_session(**_by(team, number), session_id=f"s-{number}")


def _event(team: Team, number: int) -> Any:
    return _memory(team, number)


def _receipt(team: Team, number: int) -> Any:
    """Tells a decision to a run, over HTTP as always."""
    run = start_run(team, f"Agent {number}")
    Caller(base_of(team), token_of("orchestrator")).post(f"runs/{run.run_id}/context")


LISTS: dict[str, Make] = {
    "/api/projects": _project,
    "members": _member,
    "runs": lambda team, number: start_run(team, f"Agent {number}"),
    "agents/Ana/memory": _memory,
    "memory": lambda team, number: _memory(team, number, agent_name=f"Agent {number}"),
    "decisions/inbox": _entry,
    "decisions": _decision,
    "sessions": _session,
    "events": _event,
    "decisions/{decision}/receipts": _receipt,
    "decisions/{decision}/history": lambda team, number: edit_decision(
        **_by(team, number),
        decision_id=team.project.decisions.get(title="T0").pk,
        revision=number,
        content=f"N{number}",
    ),
    "agents/Ana/memory/{memory}/history": lambda team, number: recording.edit_memory(
        **_by(team, number), memory_id=team.project.memories.get().pk, revision=number, content=f"N{number}"
    ),
}


@pytest.mark.parametrize("path", LISTS)
def test_a_list_takes_the_same_statements_for_one_row_and_for_three(
    team: Team, owner: Caller, path: str
) -> None:
    ids: dict[str, Any] = {}
    if "{decision}" in path:
        ids["decision"] = _decision(team, 0).pk
    if "{memory}" in path:
        ids["memory"] = _memory(team, 0).pk
    path = path.format(**ids)
    make = next(
        make
        for pattern, make in LISTS.items()
        if pattern.format(**{"decision": 0, "memory": 0, **ids}) == path
    )
    make(team, 1)
    owner.get(path)
    with CaptureQueriesContext(connection) as one:
        before = owner.get(path).json()["total_count"]
    make(team, 2)
    make(team, 3)
    with CaptureQueriesContext(connection) as three:
        after = owner.get(path).json()
    assert after["total_count"] > before
    assert len(after["items"]) == after["total_count"]
    assert len(one) == len(three), [query["sql"][:150] for query in three]
    assert len(three) <= 6


def test_lists_are_newest_first_and_pages_meet_without_a_gap(team: Team, owner: Caller) -> None:
    made = [_memory(team, number // 2).pk for number in range(7)]
    pages = [owner.get(f"memory?page={page}&page_size=3").json() for page in (1, 2, 3, 4)]
    assert [row["id"] for page in pages for row in page["items"]] == list(reversed(made))
    assert [{k: v for k, v in page.items() if k != "items"} for page in pages] == [
        {"page": number, "page_size": 3, "total_count": 7, "total_pages": 3} for number in (1, 2, 3, 4)
    ]


def test_an_empty_list_has_no_pages(owner: Caller) -> None:
    assert owner.get("decisions").json() == {
        "items": [], "page": 1, "page_size": 25, "total_count": 0, "total_pages": 0,
    }  # fmt: skip


def ids(response: Any) -> set[Any]:
    return {row["id"] for row in response.json()["items"]}


def test_memories_are_found_by_text_type_agent_tags_importance_trust_and_status(
    team: Team, owner: Caller
) -> None:
    one = _memory(team, 1, content="Postgres 50% faster", tags="cross-team,db", importance="high").pk
    two = _memory(team, 2, content="other", tags="cross-teams", type="pattern", agent_name="Ben").pk
    owner.post(f"agents/Ben/memory/{two}/retire", {"reason": "old"})
    three = _memory(team, 3, content="postgres", tags=[]).pk
    owner.post(f"agents/Ana/memory/{three}/approve", {"revision": 1})
    expected = {
        "": {one, two, three}, "q=POSTGRES": {one, three}, "q=50%25": {one}, "q=%25": {one}, "q=_": set(),
        "type=pattern": {two}, "agent=BEN%20": {two}, "agent=nobody": set(), "tags=cross-team": {one},
        "tags=CROSS-TEAMS,db": {one, two}, "tags=cross": set(), "tags=": {one, two, three}, "importance=high": {one},
        "trust_state=approved": {three}, "trust_state=pending": {one, two}, "status=retired": {two},
        "status=active": {one, three}, "status=all": {one, two, three}, "type=learning&q=postgres&agent=ana": {one, three},
    }  # fmt: skip
    assert {query: ids(owner.get(f"memory?{query}")) for query in expected} == expected
    of_ana = {"": {one, three}, "trust_state=approved": {three}, "status=retired": set()}
    assert {query: ids(owner.get(f"agents/ANA/memory?{query}")) for query in of_ana} == of_ana


@pytest.mark.parametrize("written", ["ÄÖÜ", "äöü", "Äöü", "ПРИВЕТ", "привет", "Ĳssel.*", "50%_é"])
def test_a_text_is_found_in_any_letter_case_of_any_script(team: Team, owner: Caller, written: str) -> None:
    found = _memory(team, 1, content=f"before {written} after")
    _memory(team, 2, content="before aou Ijssel 50% e after")
    for asked in (written, written.lower(), written.upper()):
        items = owner.get(f"memory?q={quote(asked)}").json()["items"]
        assert [row["id"] for row in items] == [found.pk], asked


def test_decisions_are_active_ones_unless_asked_otherwise(team: Team, owner: Caller) -> None:
    one, two, three = _decision(team, 1).pk, _decision(team, 2).pk, _decision(team, 3, type="process").pk
    owner.post(f"decisions/{one}/supersede", {"superseded_by": two, "reason": "newer"})
    expected = {
        "": {two, three}, "status=active": {two, three}, "status=superseded": {one}, "status=archived": set(),
        "status=all": {one, two, three}, "type=process": {three}, "agent=ana&type=scope": {two},
        "trust_state=legacy": set(), "trust_state=approved": {two, three},
    }  # fmt: skip
    assert {query: ids(owner.get(f"decisions?{query}")) for query in expected} == expected


def test_inbox_entries_are_pending_ones_unless_asked_otherwise(team: Team, owner: Caller) -> None:
    one, two, three = (
        _entry(team, 1).pk,
        _entry(team, 2, type="learning").pk,
        _entry(team, 3, agent_name="Ben").pk,
    )
    owner.post(f"decisions/inbox/{one}/merge", {"revision": 1})
    owner.post(f"decisions/inbox/{two}/reject", {"reason": "no"})
    expected = {
        "": {three}, "status=merged": {one}, "status=rejected": {two}, "status=all": {one, two, three},
        "type=learning": set(), "status=all&type=learning": {two}, "agent=ben": {three},
    }  # fmt: skip
    assert {query: ids(owner.get(f"decisions/inbox?{query}")) for query in expected} == expected


@pytest.mark.parametrize(
    "path", ["runs?status=", "decisions?status=", "decisions/inbox?type=", "memory?importance="]
)
def test_an_empty_word_of_a_closed_list_is_refused(owner: Caller, path: str) -> None:
    assert errors(owner.get(path)).keys() == {path.split("?")[1].rstrip("=")}


def test_runs_are_found_by_status_and_agent(team: Team, orchestrator: Caller) -> None:
    ana, ben = str(start_run(team).run_id), str(start_run(team, "Ben").run_id)
    orchestrator.post(f"runs/{ben}/complete", {"status": "cancelled"})
    expected = {"": {ana, ben}, "status=running": {ana}, "status=cancelled": {ben}, "agent=BEN": {ben}}
    assert {query: ids(orchestrator.get(f"runs?{query}")) for query in expected} == expected


def test_events_are_found_by_action_actor_target_and_run(
    team: Team, owner: Caller, orchestrator: Caller
) -> None:
    run = orchestrator.post("runs", {"agent_name": "Ana"}).json()
    worker = Caller(owner.base, run["token"])
    entry = {"agent_name": "Ana", "slug": "s", "type": "learning", "content": "C"}
    assert worker.post("decisions/inbox", entry).status_code == 201
    orchestrator.post(f"runs/{run['id']}/complete", {"status": "completed"})

    def actions(query: str) -> list[str]:
        return [event["action"] for event in reversed(owner.get(f"events?{query}").json()["items"])]

    assert actions(f"run={run['id']}") == [
        "run.register", "entry.submit", "run.finish", "run.told", "memory.merge", "entry.merge", "run.scribe",
    ]  # fmt: skip
    assert actions(f"run={run['id'].upper()}") == actions(f"run={run['id']}")
    assert actions(f"actor=run:{run['id']}") == ["entry.submit"]
    assert actions(f"target=run:{run['id']}") == ["run.register", "run.finish", "run.told", "run.scribe"]
    assert actions("action=project.create") == ["project.create"]
    assert actions("action=nothing") == []
    assert errors(owner.get("events?run=x")) == {"run": ["This must be a UUID."]}


def test_members_are_users_and_then_groups(team: Team, owner: Caller) -> None:
    group = Group.objects.create(name="Team A")
    policies.grant_group(project_id=team.project.pk, actor=team.owner, group=group, role="viewer", now=NOW)
    assert owner.get("members").json()["items"] == [
        *({"username": name, "group": None, "role": name} for name in ("contributor", "orchestrator", "owner", "viewer")),
        {"username": None, "group": "Team A", "role": "viewer"},
    ]  # fmt: skip


def test_only_a_callers_own_projects_are_listed(team: Team, owner: Caller) -> None:
    mine = _project(team, 1)
    slugs = [project["slug"] for project in owner.get("/api/projects").json()["items"]]
    assert slugs == [mine.slug, team.project.slug]


def test_receipts_name_the_run_and_the_revision_it_was_told(team: Team, owner: Caller) -> None:
    decision = _decision(team, 0)
    _receipt(team, 1)
    owner.patch(f"decisions/{decision.pk}", {"revision": 1, "content": "New"})
    _receipt(team, 2)
    told = owner.get(f"decisions/{decision.pk}/receipts").json()["items"]
    assert [(row["agent_name"], row["revision"], row["layer"]) for row in told] == [
        ("Agent 2", 2, 1),
        ("Agent 1", 1, 1),
    ]
    assert [row["receipt_id"] for row in told] == list(
        ContextReceipt.objects.order_by("-pk").values_list("pk", flat=True)
    )
