"""Browsers of everybody who may come to a page, and the rows they find there, made by the verbs so that their past is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from governance.deciding.decisions import create_decision
from governance.models import User
from memory.models import AgentMemory, Decision, DecisionInboxEntry, SessionContext
from memory.recording import record_memory, submit_entry
from memory.sessions import start_session
from tests.conftest import NOW, Team

BACKEND = "django.contrib.auth.backends.ModelBackend"
HTMX = {"HX-Request": "true"}


@dataclass(frozen=True)
class Browsers:
    """One browser for each kind of reader; `superuser` holds no grant, `anonymous` is not signed in."""

    owner: Client
    contributor: Client
    viewer: Client
    orchestrator: Client
    stranger: Client
    superuser: Client
    anonymous: Client


def browser_of(username: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=username), backend=BACKEND)
    return client


@pytest.fixture
def browsers(team: Team) -> Browsers:
    User.objects.create_superuser("root")
    named = {
        name: browser_of(name) for name in ("owner", "contributor", "viewer", "orchestrator", "stranger")
    }
    return Browsers(**named, superuser=browser_of("root"), anonymous=Client())


@pytest.fixture
def owner(browsers: Browsers) -> Client:
    return browsers.owner


def statements(client: Client, address: str, **headers: str) -> int:
    """How many SQL statements a page takes, once what is looked up a single time is known."""
    client.get(address)
    with CaptureQueriesContext(connection) as caught:
        assert client.get(address, headers=headers).status_code == 200
    return len(caught)


def an_entry(team: Team, slug: str = "pin-the-tide-tables", **values: Any) -> DecisionInboxEntry:
    """A pending entry; given the slug of one of theirs, the contributor changes that one."""
    given = {"agent_name": "Ana", "type": "learning", "content": "Tides repeat after 18.6 years.", **values}
    entry, _ = submit_entry(project_id=team.project.pk, actor=team.contributor, slug=slug, now=NOW, **given)
    return entry


def a_memory(team: Team, content: str = "The build needs two cores.", **values: Any) -> AgentMemory:
    given = {"agent_name": "Ana", "type": "learning", **values}
    return record_memory(
        project_id=team.project.pk, actor=team.contributor, content=content, now=NOW, **given
    )


def a_decision(team: Team, title: str = "One database", **values: Any) -> Decision:
    given = {"agent_name": "Ana", "type": "architectural", "content": "All in one.", **values}
    return create_decision(project_id=team.project.pk, actor=team.owner, title=title, now=NOW, **given)


def a_session(team: Team, session_id: str = "monday", **values: Any) -> SessionContext:
    return start_session(
        project_id=team.project.pk, actor=team.contributor, session_id=session_id, now=NOW, **values
    )
