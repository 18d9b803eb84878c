"""The arena of the race and fault tests: threads on PostgreSQL, processes with a database file of their own on SQLite."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from tests.races.arena import Arena, database_url

SQLITE = connection.vendor == "sqlite"


@pytest.fixture(scope="session")
def migrated(django_db_setup: None, django_db_blocker, tmp_path_factory) -> Path:
    """A file with the tests' own empty, migrated database; SQLite only."""
    file = tmp_path_factory.mktemp("migrated") / "db.sqlite3"
    with django_db_blocker.unblock(), sqlite3.connect(file) as copy:
        connection.ensure_connection()
        connection.connection.backup(copy)
    copy.close()
    return file


@pytest.fixture(scope="module")
def crowd(request: pytest.FixtureRequest, django_db_setup: None, tmp_path_factory) -> Iterator[Arena]:
    """Processes that keep for a whole module, with a database file of their own on SQLite."""
    arena = Arena(file_url(request, tmp_path_factory.mktemp("crowd")) if SQLITE else database_url())
    yield arena
    arena.close()


def file_url(request: pytest.FixtureRequest, folder: Path) -> str:
    file = folder / "db.sqlite3"
    shutil.copy(request.getfixturevalue("migrated"), file)
    return f"sqlite:///{file}"


@pytest.fixture
def arena(crowd: Arena) -> Arena:
    """Contenders as the engine has them: threads with connections of their own, or processes.

    `crowd` is named here, not asked for later: its copy of the database has to be made before the test's transaction begins, for
    whose end it would wait without end.
    """
    return crowd if SQLITE else Arena()


@pytest.fixture
def processes(crowd: Arena) -> Arena:
    """Contenders as processes on either engine."""
    return crowd
