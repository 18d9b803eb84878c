"""The connection pool under the threads of a real gunicorn: more requests at once than connections (SPEC 11)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from tests.agentweaver.operations.test_serving import (
    CLIENTS,
    EACH,
    crowd,
    everybody_writes,
    migrated,
    processes,
    project,
    serve,
    token,
)
from tests.races.arena import RACE

__all__ = ["crowd", "migrated", "processes", "project", "serve", "token"]

pytestmark = [*RACE, pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no pool")]


def connected() -> set[int]:
    """The server processes of everybody who is connected to this database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        return {pid for (pid,) in cursor.fetchall()}


def test_eight_clients_share_two_connections(serve: Callable[..., Any], project: str, token: str) -> None:
    before = connected()
    with serve(WEB_CONCURRENCY="1", WEB_THREADS=str(CLIENTS), DATABASE_POOL_SIZE="2") as server:
        found = everybody_writes(server, project, token)
        assert found == {201: 2 * CLIENTS * EACH, 200: 2 * CLIENTS * EACH}
        assert len(connected() - before) == 2
