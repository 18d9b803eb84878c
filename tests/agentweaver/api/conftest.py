"""Callers of the API: one for each person of the team, and one for each run a test starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from governance.models import User
from governance.people.credentials import issue_personal_token, issue_run_credential
from memory.actors import VerifiedRun
from memory.models import Run
from tests.conftest import Team


@dataclass
class Caller:
    """Speaks JSON with one credential. `base` stands before every path that does not begin with a slash."""

    base: str
    token: str | None = None
    client: Client = field(default_factory=Client)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        sent: dict[str, Any] = {}
        if body is not None:
            sent = {"data": json.dumps(body), "content_type": "application/json"}
        if self.token is not None:
            headers = {"Authorization": f"Bearer {self.token}", **headers}
        address = path if path.startswith("/") else f"{self.base}/{path}".rstrip("/")
        return self.client.generic(method, address, headers=headers, **sent)

    def get(self, path: str = "", **headers: str) -> Any:
        return self("GET", path, **headers)

    def post(self, path: str, body: Any = None) -> Any:
        return self("POST", path, body if body is not None else {})

    def patch(self, path: str, body: Any) -> Any:
        return self("PATCH", path, body)

    def put(self, path: str, body: Any) -> Any:
        return self("PUT", path, body)


def base_of(team: Team) -> str:
    return f"/api/projects/{team.project.slug}"


def token_of(username: str) -> str:
    return issue_personal_token(User.objects.get(username=username), now=timezone.now()).token


def run_token(actor: VerifiedRun) -> str:
    return issue_run_credential(Run.objects.get(pk=actor.run_id), timezone.now()).token


@pytest.fixture
def as_person(team: Team) -> Callable[[str], Caller]:
    return lambda username: Caller(base_of(team), token_of(username))


@pytest.fixture
def as_run(team: Team) -> Callable[[VerifiedRun], Caller]:
    return lambda actor: Caller(base_of(team), run_token(actor))


@pytest.fixture
def owner(as_person: Callable[[str], Caller]) -> Caller:
    return as_person("owner")


@pytest.fixture
def orchestrator(as_person: Callable[[str], Caller]) -> Caller:
    return as_person("orchestrator")


@pytest.fixture
def contributor(as_person: Callable[[str], Caller]) -> Caller:
    return as_person("contributor")


@pytest.fixture
def anonymous(team: Team) -> Caller:
    return Caller(base_of(team))


def problem(response: Any) -> tuple[int, str]:
    """Status and code of a problem document, after looking that it is one."""
    assert response["Content-Type"] == "application/problem+json", response.content
    told = json.loads(response.content)
    assert told["status"] == response.status_code
    assert told["type"] == f"/problems/{told['code'].replace('_', '-')}"
    assert {"title", "detail", "request_id"} <= told.keys()
    return response.status_code, told["code"]


def errors(response: Any) -> dict[str, list[str]]:
    assert problem(response) == (400, "invalid")
    found: dict[str, list[str]] = json.loads(response.content)["errors"]
    return found
