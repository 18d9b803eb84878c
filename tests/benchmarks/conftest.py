"""`make bench`: one run of everything, ending in a table and in bench.json."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test.utils import setup_databases, teardown_databases

from tests.benchmarks import world
from tests.benchmarks.by_hand import connect
from tests.benchmarks.measuring import Report
from tests.benchmarks.world import FULL, QUICK, Loaded, Scale

FILE = Path(__file__).parents[2] / "bench.json"
_REPORT = pytest.StashKey[Report]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="benchmarks: small tables, few rounds, no verdicts")


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest) -> Report:
    if connection.vendor != "postgresql":
        pytest.skip("the figures are those of PostgreSQL: `make bench`")
    found = Report(request.config.getoption("--quick", default=False))
    request.config.stash[_REPORT] = found
    return found


@pytest.fixture(scope="session")
def scale(report: Report) -> Scale:
    return QUICK if report.is_quick else FULL


@pytest.fixture(scope="session")
def stored(report: Report, django_db_blocker: Any) -> Iterator[None]:
    """A database of our own in which everything is committed; it goes as a whole in the end."""
    with django_db_blocker.unblock():
        databases = setup_databases(verbosity=0, interactive=False)
        report.database = world.database_version()
        yield
        teardown_databases(databases, verbosity=0)


@pytest.fixture(scope="session")
def raw(stored: None) -> Iterator[psycopg.Connection[Any]]:
    """A connection that knows nothing of Django."""
    with connect() as connection:
        yield connection


@pytest.fixture(scope="session")
def loads(stored: None, scale: Scale, report: Report) -> dict[str, Loaded]:
    return world.loads(scale, report)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    report = config.stash.get(_REPORT, None)
    if report is None or not report.figures:
        return
    report.save(FILE)
    terminalreporter.section("figures")
    terminalreporter.write_line(report.table())
    terminalreporter.write_line(f"Written to {FILE.name}.")
