"""Who may call which route: the whole table of SPEC 5, one request for every caller and route.

`ROUTES` and `ANSWERS` are data; anyone who wants to print the table imports them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.urls import URLPattern, get_resolver
from django.utils import timezone

from agentweaver.api.routing import Operation, Resource, resource
from agentweaver.api.urls import urlpatterns
from governance.deciding.decisions import create_decision
from governance.deciding.projects import create_project
from governance.models import RunCredential, User
from governance.people.credentials import issue_personal_token, issue_run_credential, revoke_run_credential
from memory import recording, sessions
from memory.actors import Human, VerifiedRun
from memory.ledger.changes import change
from memory.models import Run
from memory.runs import finish_run, register_run
from tests.agentweaver.api.conftest import Caller, problem, run_token, token_of
from tests.conftest import NOW, Team, start_run

PEOPLE = ("owner", "contributor", "viewer", "orchestrator", "superuser", "stranger")
"""`superuser` has no grant. People of the team by role."""
RUNS = ("worker", "coordinator", "other_run")
"""`worker` is Ana's run, `coordinator` Cleo's; `other_run` is a coordinator of another project."""
DEAD = ("anonymous", "ended_coordinator", "revoked", "expired", "unknown")
CALLERS = (*PEOPLE, *RUNS, *DEAD)

OK = (0, "")
"""The route's own success."""

_CREDENTIALS = {
    "anonymous": (401, "not_authenticated"),
    "ended_coordinator": (401, "run_ended"),
    "revoked": (401, "invalid_credential"),
    "expired": (401, "invalid_credential"),
    "unknown": (401, "invalid_credential"),
}
_HIDDEN = {"stranger": (404, "not_found"), "other_run": (404, "not_found")}
_MEMBERS = ("owner", "contributor", "viewer", "orchestrator", "superuser", "worker", "coordinator")


def _only(*allowed: str, code: str = "role_required", **more: tuple[int, str]) -> dict[str, tuple[int, str]]:
    members = {name: OK if name in allowed else (403, code) for name in _MEMBERS}
    return {**members, **_HIDDEN, **_CREDENTIALS, **more}


ANSWERS: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "read": _only(*_MEMBERS),
    "record": _only("owner", "contributor", "worker", "coordinator"),
    "record as Ana": _only("owner", "contributor", "worker", coordinator=(403, "agent_mismatch")),
    "decide": _only("owner", "coordinator", code="decider_required"),
    "decide as Ana": _only("owner", code="decider_required", coordinator=(403, "agent_mismatch")),
    "export": _only("owner", "contributor", "orchestrator", "worker", "coordinator"),
    "import": _only("owner", "contributor"),
    "run runs": _only("owner", "orchestrator"),
    "build Ana's context": _only("owner", "orchestrator", "worker"),
    "manage": _only("owner"),
    "signed in": {**dict.fromkeys((*PEOPLE, *RUNS), OK), **_CREDENTIALS},
    "person": {
        **dict.fromkeys(PEOPLE, OK),
        **dict.fromkeys(RUNS, (403, "role_required")),
        **_CREDENTIALS,
    },
    "public": dict.fromkeys(CALLERS, OK),
}
"""What each caller is answered, by what a route needs."""


@dataclass(frozen=True)
class Route:
    """A route with a request that succeeds for whoever may make it. `{…}` in `path` are ids of the prepared rows."""

    needs: str
    method: str
    path: str
    body: Any = None
    status: int = 200

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


_AGENT = "/projects/{p}/agents/{agent}"
_MEMORY = f"{_AGENT}/memory/{{memory}}"
_ENTRY = "/projects/{p}/decisions/inbox/{entry}"
_DECISION = "/projects/{p}/decisions/{decision}"
_NEW_DECISION = {"agent_name": "Ana", "type": "scope", "title": "T", "content": "C"}
_NEW_ENTRY = {"agent_name": "Ana", "slug": "another", "type": "scope", "content": "C"}

ROUTES = (
    Route("public", "GET", "/schema"),
    Route("public", "GET", "/docs"),
    Route("signed in", "GET", "/projects"),
    Route("person", "POST", "/projects", {"name": "N", "slug": "new-one"}, 201),
    Route("read", "GET", "/projects/{p}"),
    Route("manage", "PATCH", "/projects/{p}", {"name": "Another"}),
    Route("read", "GET", "/projects/{p}/members"),
    Route("read", "GET", "/projects/{p}/members/viewer"),
    Route("manage", "PUT", "/projects/{p}/members/stranger", {"role": "viewer"}),
    Route("manage", "DELETE", "/projects/{p}/members/viewer", None, 204),
    Route("read", "GET", "/projects/{p}/runs"),
    Route("run runs", "POST", "/projects/{p}/runs", {"agent_name": "Ana"}, 201),
    Route("read", "GET", "/projects/{p}/runs/{run}"),
    Route("build Ana's context", "POST", "/projects/{p}/runs/{run}/context"),
    Route("run runs", "POST", "/projects/{p}/runs/{run}/complete", {"status": "completed"}),
    Route("read", "GET", f"{_AGENT}/context"),
    Route("read", "GET", f"{_AGENT}/context/explain"),
    Route("read", "GET", "/projects/{p}/context/decisions"),
    Route("read", "GET", f"{_AGENT}/memory"),
    Route("record as Ana", "POST", f"{_AGENT}/memory", {"type": "update", "content": "C"}, 201),
    Route("read", "GET", _MEMORY),
    Route("record as Ana", "PATCH", _MEMORY, {"revision": 1, "content": "D"}),
    Route("decide", "POST", f"{_MEMORY}/approve", {"revision": 1}),
    Route("decide", "POST", f"{_MEMORY}/promote", {"revision": 1}),
    Route("decide", "POST", f"{_MEMORY}/retire", {"reason": "old"}),
    Route("read", "GET", f"{_MEMORY}/history"),
    Route("read", "GET", "/projects/{p}/memory"),
    Route("read", "GET", "/projects/{p}/memory/{memory}/receipts"),
    Route("export", "POST", "/projects/{p}/memory/export"),
    Route("export", "GET", "/projects/{p}/memory/export.zip"),
    Route("import", "POST", "/projects/{p}/memory/import", {"source": "workspace"}),
    Route("read", "GET", "/projects/{p}/decisions/inbox"),
    Route("record as Ana", "POST", "/projects/{p}/decisions/inbox", _NEW_ENTRY, 201),
    Route("read", "GET", _ENTRY),
    Route("decide", "POST", f"{_ENTRY}/merge", {"revision": 1}),
    Route("decide", "POST", f"{_ENTRY}/promote", {"revision": 1}),
    Route("decide", "POST", f"{_ENTRY}/reject", {"reason": "no"}),
    Route("read", "GET", "/projects/{p}/decisions"),
    Route("decide as Ana", "POST", "/projects/{p}/decisions", _NEW_DECISION, 201),
    Route("read", "GET", _DECISION),
    Route("decide", "PATCH", _DECISION, {"revision": 1, "content": "D"}),
    Route("decide", "POST", f"{_DECISION}/approve", {"revision": 1}),
    Route("decide", "POST", f"{_DECISION}/supersede", {"superseded_by": "{successor}", "reason": "newer"}),
    Route("decide", "POST", f"{_DECISION}/archive", {"reason": "old"}),
    Route("read", "GET", f"{_DECISION}/history"),
    Route("read", "GET", f"{_DECISION}/receipts"),
    Route("read", "GET", "/projects/{p}/sessions"),
    Route("record", "POST", "/projects/{p}/sessions", {"session_id": "second"}, 201),
    Route("read", "GET", "/projects/{p}/sessions/current"),
    Route("record", "PUT", "/projects/{p}/sessions/current", {"summary": "S"}),
    Route("read", "GET", "/projects/{p}/sessions/first"),
    Route("record", "PATCH", "/projects/{p}/sessions/first", {"summary": "S"}),
    Route("read", "GET", "/projects/{p}/events"),
    Route("read", "GET", "/projects/{p}/events/verify"),
)


@dataclass(frozen=True)
class World:
    """A project with one row of everything, the ids of those rows, and a token for every caller."""

    ids: Mapping[str, Any]
    tokens: Mapping[str, str | None]

    def ask(self, caller: str, route: Route) -> Any:
        body = route.body
        if isinstance(body, dict):
            body = {name: self.ids.get(str(value).strip("{}"), value) for name, value in body.items()}
        return Caller("", self.tokens[caller])(route.method, f"/api{route.path.format(**self.ids)}", body)


@pytest.fixture
def world(team: Team, tmp_path: Path, settings: Any) -> World:
    settings.AGENTWEAVER_WORKSPACE_ROOT = str(tmp_path)
    (tmp_path / team.project.slug / ".squad").mkdir(parents=True)
    User.objects.create_superuser("superuser", "")
    worker, coordinator = start_run(team), start_run(team, "Cleo", role="coordinator")
    return World(_rows(team, worker), {**_living(team, worker, coordinator), **_dead(team)})


def _rows(team: Team, worker: VerifiedRun) -> dict[str, Any]:
    by = {"project_id": team.project.pk, "actor": team.owner, "now": NOW}
    memory = recording.record_memory(agent_name="Ana", type="learning", content="C", **by)  # type: ignore[arg-type]
    entry, _ = recording.submit_entry(agent_name="Ana", slug="e", type="scope", content="C", **by)  # type: ignore[arg-type]
    decision, successor = (
        create_decision(agent_name="Ana", type="scope", title=title, content="C", **by)  # type: ignore[arg-type]
        for title in ("Old", "New")
    )
    sessions.start_session(session_id="first", **by)  # type: ignore[arg-type]
    return {
        "p": team.project.slug, "agent": "Ana", "run": worker.run_id, "memory": memory.pk, "entry": entry.pk,
        "decision": decision.pk, "successor": successor.pk,
    }  # fmt: skip


def _living(team: Team, worker: VerifiedRun, coordinator: VerifiedRun) -> dict[str, str | None]:
    people = {name: token_of(name) for name in PEOPLE}
    other = create_project(actor=Human("stranger"), name="Other", slug="other", now=NOW)
    with change(other.pk, team.stranger, NOW) as opened:
        run, _ = register_run(opened, agent_name="Ana", role="coordinator")
    elsewhere = issue_run_credential(run, timezone.now()).token
    runs = {"worker": run_token(worker), "coordinator": run_token(coordinator), "other_run": elsewhere}
    return {**people, **runs}


def _dead(team: Team) -> dict[str, str | None]:
    ended, revoked = start_run(team, "Cleo", role="coordinator"), start_run(team, "Ana")
    tokens = {"ended_coordinator": run_token(ended), "revoked": run_token(revoked)}
    with change(team.project.pk, team.orchestrator, NOW) as opened:
        finish_run(opened, ended.run_id, "completed")
    revoke_run_credential(Run.objects.get(pk=revoked.run_id), timezone.now())
    expired = start_run(team, "Ana")
    tokens["expired"] = run_token(expired)
    RunCredential.objects.filter(run=expired.run_id).update(expires_at=timezone.now())
    return {**tokens, "anonymous": None, "unknown": "awr_" + "x" * 43}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_caller_gets_the_answer_of_the_table(world: World, route: Route) -> None:
    expected = {
        caller: (route.status, "") if answer == OK else answer
        for caller, answer in ANSWERS[route.needs].items()
    }
    assert {caller: _answer(world, caller, route) for caller in CALLERS} == expected


def _answer(world: World, caller: str, route: Route) -> tuple[int, str]:
    """Status and code; whatever the request changed is taken back."""
    with transaction.atomic():
        response = world.ask(caller, route)
        transaction.set_rollback(True)
    return problem(response) if response.status_code >= 400 else (response.status_code, "")


def test_an_expired_personal_token_and_a_disabled_user_prove_nothing(team: Team) -> None:
    user = User.objects.get(username="owner")
    old = issue_personal_token(user, days=1, now=NOW.replace(year=2020)).token
    good = issue_personal_token(user, now=timezone.now()).token
    assert problem(Caller("", old).get("/api/projects")) == (401, "invalid_credential")
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert problem(Caller("", good).get("/api/projects")) == (401, "invalid_credential")


# The guard: no route without a policy, no route outside the table


def _operations() -> Iterator[tuple[str, str, Any]]:
    for pattern in urlpatterns:
        for method, found in _of(pattern).items():
            yield method, str(pattern.pattern), found


def _of(pattern: URLPattern) -> Mapping[str, Any]:
    view = getattr(pattern.callback, "cls", None)
    if view is not None and issubclass(view, Resource):
        return view.operations
    assert pattern.name in ("api-schema", "api-docs"), f"{pattern} is no Resource"
    return {"GET": None}


def test_every_route_of_the_api_names_a_policy() -> None:
    unnamed = [(m, path) for m, path, found in _operations() if found and not isinstance(found, Operation)]
    assert unnamed == []


def test_every_route_of_the_api_is_in_the_table() -> None:
    def shape(path: str) -> str:
        parts = path.strip("/").split("/")
        return "/".join("*" if part.startswith(("{", "<")) else part for part in parts)

    def known(path: str) -> str:
        return path.replace("/members/viewer", "/members/{u}").replace("/members/stranger", "/members/{u}")

    routed = {(method, shape(path)) for method, path, _ in _operations()}
    listed = {(r.method, shape(known(r.path).replace("/sessions/first", "/sessions/{s}"))) for r in ROUTES}
    assert listed == routed


def test_a_function_without_a_policy_makes_no_route() -> None:
    with pytest.raises(TypeError, match="every route needs"):
        resource(GET=lambda request: None)  # type: ignore[arg-type]


def test_nothing_else_under_api_is_a_view_of_the_rest_framework() -> None:
    outside = [str(p.pattern) for p in get_resolver().url_patterns if str(p.pattern).startswith("api")]
    assert outside == ["api/"]
