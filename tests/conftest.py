"""What every test can ask for: a project with its people, and databases that can be emptied although the ledger cannot."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection, connections
from django.test import TransactionTestCase

from governance.deciding.projects import create_project
from governance.models import User
from governance.people.policies import Role, put_grant
from memory.actors import Human, VerifiedRun
from memory.ledger.changes import change
from memory.models import Project, Run
from memory.runs import register_run

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """SQLite's test database is a file like any other, not Django's shared memory: there a reader beside a writer gets an error at once,
    which no user ever sees. Nobody needs it after a power cut, so nothing waits for the disk.
    """
    for alias in connections:
        config = connections.settings[alias]
        if config["ENGINE"].endswith("sqlite3"):
            config["TEST"]["NAME"] = str(tmp_path_factory.mktemp("database") / f"{alias}.sqlite3")
            config["OPTIONS"]["init_command"] = config["OPTIONS"]["init_command"].replace("FULL", "OFF")


@pytest.fixture(autouse=True, scope="session")
def _flush_past_the_triggers() -> Iterator[None]:
    """Emptying tables between transactional tests is the one thing the append-only triggers must let pass.

    The triggers are dropped and made again around that step alone, by their own migration.
    """
    triggers = importlib.import_module("memory.migrations.0002_append_only")
    # Private in Django and in its stubs; there is no public step between the test and the flush.
    empty: Callable[[TransactionTestCase], None] = getattr(TransactionTestCase, "_fixture_teardown")  # noqa: B009

    def teardown(case: TransactionTestCase) -> None:
        with connection.schema_editor() as editor:
            triggers.remove(None, editor)
        try:
            empty(case)
        finally:
            with connection.schema_editor() as editor:
                triggers.install(None, editor)

    patch = pytest.MonkeyPatch()
    patch.setattr(TransactionTestCase, "_fixture_teardown", teardown)
    yield
    patch.undo()


@pytest.fixture(autouse=True)
def _no_limits_by_address(settings: Any) -> None:
    """All tests come from one address, and faster than any caller; those about limits set their own."""
    settings.UNPROVEN_REQUESTS_PER_MINUTE = settings.LOGIN_ATTEMPTS_PER_MINUTE = 0


@dataclass(frozen=True)
class Team:
    """A project with one person in every role, and one who has none."""

    project: Project
    owner: Human
    contributor: Human
    viewer: Human
    orchestrator: Human
    stranger: Human


@pytest.fixture
def now() -> datetime:
    return NOW


@pytest.fixture
def team(db: None, now: datetime) -> Team:
    for name in (*Role, "stranger"):
        User.objects.create_user(str(name))
    project = create_project(actor=Human("owner"), name="Lighthouse", slug="lighthouse", now=now)
    with change(project.pk, Human("owner"), now) as opened:
        for role in Role:
            if role != Role.OWNER:
                put_grant(opened, str(role), role)
    project.refresh_from_db()
    return Team(
        project, *(Human(name) for name in ("owner", "contributor", "viewer", "orchestrator", "stranger"))
    )


def start_run(
    team: Team, agent_name: str = "Ana", *, role: str = "worker", parent: Run | None = None
) -> VerifiedRun:
    """A registered, running run as an actor."""
    with change(team.project.pk, team.orchestrator, NOW) as opened:
        run, _ = register_run(
            opened, agent_name=agent_name, role=role, parent_run_id=parent.pk if parent is not None else None
        )
    return Run.objects.select_related("agent").get(pk=run.pk).as_actor()
