"""How tests of pages ask: each reader for a status, and the database for the number of its statements."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.governance.pages.conftest import Browsers

READERS = ("owner", "contributor", "viewer", "orchestrator", "stranger", "superuser", "anonymous")
"""The order in which answers are listed."""
MEMBERS = [200, 200, 200, 200, 404, 200, 302]
"""A page for everybody in the project; a superuser looks, to a stranger there is no project."""


def answers(browsers: Browsers, address: str, form: dict[str, Any] | None = None) -> list[int]:
    """Each reader's status for a GET, or for a POST of the form."""
    if form is None:
        return [getattr(browsers, name).get(address).status_code for name in READERS]
    return [getattr(browsers, name).post(address, form).status_code for name in READERS]


def statements(client: Client, address: str) -> int:
    """The SQL statements of one GET, after one that filled what is kept in memory."""
    client.get(address)
    with CaptureQueriesContext(connection) as caught:
        assert client.get(address).status_code == 200
    return len(caught)
