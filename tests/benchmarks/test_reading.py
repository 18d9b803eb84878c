"""Search and every page at the sizes of SPEC 11."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, reverse
from django.utils import timezone

from governance import urls
from governance.people.credentials import issue_run_credential
from memory.compiling.compiler import Limits
from memory.compiling.receipts import build_for_run
from memory.ledger.changes import change
from memory.models import (
    Agent,
    AgentMemory,
    Decision,
    DecisionInboxEntry,
    LedgerEvent,
    Project,
    Run,
    SessionContext,
)
from memory.runs import register_run
from tests.benchmarks import load
from tests.benchmarks.asking import as_served, ask, bearer, browser
from tests.benchmarks.load import OWNER, Size
from tests.benchmarks.measuring import Report, Work, interleaved, once
from tests.benchmarks.world import Scale

pytestmark = pytest.mark.benchmark

PAGE_MS = 150


@pytest.fixture(scope="module")
def served(stored: None) -> Iterator[None]:
    with as_served():
        yield


# Search


def test_search(served: None, scale: Scale, report: Report) -> None:
    for count in scale.searched:
        project = load.new_project(f"searched-{count}")
        load.plain_memories(project, load.new_agents(project, 20), count)
    load.analyse()
    who = bearer(OWNER.username)
    queries = {
        "a word in many": "q=broker",
        "a word in one": "q=(note 77)",
        "by tag": "tags=cross-team",
        "no filter": "",
    }
    for name, query in queries.items():
        works: dict[str, Work] = {
            f"{count}": partial(
                ask, "GET", f"/api/projects/searched-{count}/memory?page_size=50&{query}", who
            )
            for count in scale.searched
        }
        times = interleaved(max(5, scale.rounds // 20), works, warm_up=1)
        for count in scale.searched:
            report.add(f"search of {count:,} memories, {name}", times[f"{count}"].shortest, "ms")


# Pages


@pytest.fixture(scope="module")
def crowded(served: None, scale: Scale) -> Project:
    """A project in which everything a page can show is there, and there is a lot of it."""
    project = load.load(Size("crowded", 1))
    agents = list(Agent.objects.filter(project=project))
    load.pending_entries(project, agents, scale.pending)
    load.plain_memories(project, agents, scale.memories)
    load.legacy_memories(project, agents, scale.pending)
    load.events(project, scale.memories)
    for number in range(50):
        with change(project.pk, OWNER, timezone.now()) as opened:
            run, _ = register_run(opened, agent_name=f"a{number % 6}")
        issue_run_credential(run, timezone.now())
        build_for_run(Run.objects.select_related("agent", "project").get(pk=run.pk), Limits(), timezone.now())
    load.analyse()
    return Project.objects.get(pk=project.pk)


def addresses(
    patterns: Any, known: dict[str, Any], above: frozenset[str] = frozenset()
) -> Iterator[tuple[str, str]]:
    """Every page of the URL table by name, each with a row that is there."""
    for found in patterns:
        wanted = above | set(found.pattern.regex.groupindex)
        if isinstance(found, URLResolver):
            yield from addresses(found.url_patterns, known, wanted)
        elif isinstance(found, URLPattern):
            name = str(found.name)
            yield name, reverse(f"governance:{name}", kwargs={key: known[key] for key in wanted})


def values(project: Project) -> dict[str, Any]:
    """What the addresses of the pages name. A new kind of row has to be added here: a page that is not measured is a KeyError."""
    memory = AgentMemory.objects.filter(project=project).latest("pk")
    return {
        "project": project.slug,
        "entry_id": DecisionInboxEntry.objects.filter(project=project).latest("pk").pk,
        "memory_id": memory.pk,
        "decision_id": Decision.objects.filter(project=project, status="active", trust_state="approved")
        .latest("pk")
        .pk,
        "session_pk": SessionContext.objects.filter(project=project).latest("pk").pk,
        "receipt_id": project.receipts.latest("pk").pk,
        "run_id": Run.objects.filter(project=project).latest("started_at").pk,
        "number": LedgerEvent.objects.filter(project=project).latest("number").number,
        "kind": "memory",
        "row_id": memory.pk,
        "token_id": 1,
    }


MORE = {
    "memory": ["q=broker", "status=all"],
    "decisions": ["q=broker"],
    "inbox": ["q=broker"],
    "audit": ["action=memory.record"],
}
"""Pages that are asked for with a filter, too."""


def test_every_page(crowded: Project, scale: Scale, report: Report) -> None:
    who = browser(OWNER.username)
    for name, address in addresses(urls.urlpatterns, values(crowded)):
        for query in ("", *MORE.get(name, ())):
            began = time.perf_counter()
            answer = ask("GET", f"{address}?{query}".rstrip("?"), who)
            first = time.perf_counter() - began
            if answer.status == 405:
                continue
            assert answer.status == 200, (name, address, answer.status)
            shown = f"{name}?{query}".rstrip("?")
            if answer.headers["Content-Type"].startswith("text/html"):
                again = [once(partial(ask, "GET", f"{address}?{query}".rstrip("?"), who)) for _ in range(5)]
                report.add(f"page {shown}", min(again) * 1000, "ms", PAGE_MS)
            else:
                report.add(f"download {shown}", first * 1000, "ms", note="once")
