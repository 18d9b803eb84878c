"""The callers of the API, and the log as it is written in earnest."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.cache import cache

from agentweaver.operations.logs import Lines
from tests.agentweaver.api.conftest import anonymous, as_person, as_run, contributor, orchestrator, owner

__all__ = ["anonymous", "as_person", "as_run", "contributor", "orchestrator", "owner"]

Written = Callable[[], list[dict[str, Any]]]


class Kept(logging.Handler):
    """Writes each line at once, as a handler does: what a record points at may change later."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(Lines())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def written() -> Iterator[Written]:
    """What stands in the log, line by line, down to DEBUG."""
    kept, root = Kept(), logging.getLogger()
    level = root.level
    root.addHandler(kept)
    root.setLevel(logging.DEBUG)
    yield lambda: [json.loads(line) for line in kept.lines]
    root.removeHandler(kept)
    root.setLevel(level)


@pytest.fixture(autouse=True)
def _fresh_counters() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()
