"""Whole requests for a context: against a bare view, 304 against 200, with a receipt (SPEC 11)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from memory.ledger.changes import change
from memory.runs import register_run
from tests.benchmarks.asking import Answer, as_served, ask, bearer, held, statements
from tests.benchmarks.load import OWNER
from tests.benchmarks.measuring import Report, Work, interleaved
from tests.benchmarks.world import Loaded, Scale, allow_all

pytestmark = pytest.mark.benchmark


@pytest.fixture(scope="module")
def served(stored: None) -> Iterator[None]:
    with as_served():
        yield


@pytest.fixture(scope="module")
def works(served: None, loads: dict[str, Loaded]) -> dict[str, Work]:
    """The requests that are compared, each checked once."""
    allow_all(loads["GM-1"].project)
    who = bearer(OWNER.username)
    preview = "/api/projects/gm-1/agents/a0/context"
    first = answered(partial(ask, "GET", preview, who), 200)
    text = answered(partial(ask, "GET", preview, {**who, "HTTP_ACCEPT": "text/plain"}), 200)
    held["json"] = first.headers["Content-Type"], first.body
    held["text"] = text.headers["Content-Type"], text.body
    told = partial(
        ask, "POST", run_context(loads["GM-1"]), {**who, "CONTENT_TYPE": "application/json"}, b"{}"
    )
    found: dict[str, Work] = {
        "json": partial(ask, "GET", preview, who),
        "bare_json": partial(ask, "GET", "/bare/json", {}),
        "text": partial(ask, "GET", preview, {**who, "HTTP_ACCEPT": "text/plain"}),
        "bare_text": partial(ask, "GET", "/bare/text", {}),
        "unchanged": partial(ask, "GET", preview, {**who, "HTTP_IF_NONE_MATCH": first.headers["ETag"]}),
        "told": told,
    }
    assert answered(found["bare_json"], 200).body == first.body
    answered(found["unchanged"], 304)
    answered(told, 200)
    return found


def run_context(loaded: Loaded) -> str:
    with change(loaded.project.pk, OWNER, timezone.now()) as opened:
        run, _ = register_run(opened, agent_name=loaded.agent.name, external_id="bench")
    return f"/api/projects/{loaded.project.slug}/runs/{run.pk}/context"


def answered(work: Work, status: int) -> Answer:
    answer: Any = work()
    assert answer.status == status, answer.body[:500]
    assert isinstance(answer, Answer)
    return answer


def test_against_a_bare_view(works: dict[str, Work], scale: Scale, report: Report) -> None:
    times = interleaved(scale.rounds, works)
    size = len(held["json"][1])
    note = f"{size:,} bytes; the same middleware"
    report.ratio("preview, JSON / bare view", times, "json", "bare_json", note=note)
    report.ratio("preview, text / bare view", times, "text", "bare_text")
    report.ratio("preview, 304 / 200", times, "unchanged", "json")
    report.ratio("run's context with receipt / preview", times, "told", "json")


def test_statements(works: dict[str, Work], loads: dict[str, Loaded], report: Report) -> None:
    who = bearer(OWNER.username)
    for name in ("GM-1", "GM-10"):
        work = partial(ask, "GET", f"/api/projects/{name.lower()}/agents/a0/context", who)
        answered(work, 200)
        found = statements(work)
        report.add(f"statements of a preview, {name}", len(found), "", 8)
    report.add("statements of a run's context", len(statements(works["told"])), "", 8)
    unchanged = statements(works["unchanged"])
    read = sorted({table for sql in unchanged for table in re.findall(r'(?:FROM|JOIN) "(memory_\w+)"', sql)})
    note = f"tables of the ledger: {', '.join(read)}; the rest is who asks and may they"
    report.add("statements of a 304", len(unchanged), "", note=note)
    report.add("tables of the ledger a 304 reads", len(read), "", 1)
