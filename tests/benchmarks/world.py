"""What the benchmarks measure: how many rows, how many rounds, and the projects that hold the rows."""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.db import connection

from memory.models import Agent, Project
from tests.benchmarks import load
from tests.benchmarks.load import GM_1, GM_10, GM_1000, Size
from tests.benchmarks.measuring import Report


@dataclass(frozen=True)
class Scale:
    """How large the tables are and how often everything is repeated."""

    largest: Size
    rounds: int
    pending: int
    memories: int
    searched: tuple[int, int]
    requests: int
    writers: tuple[int, ...]
    writing: float
    """Seconds that each crowd of writers writes."""


FULL = Scale(GM_1000, 200, 10_000, 100_000, (10_000, 100_000), 10_000, (1, 4, 8), 4.0)
QUICK = Scale(GM_10, 10, 100, 1_000, (100, 1_000), 100, (2,), 0.3)


@dataclass(frozen=True)
class Loaded:
    """A standard load and the agent whose context is compiled."""

    project: Project
    agent: Agent


def loads(scale: Scale, report: Report) -> dict[str, Loaded]:
    """The standard loads by name, and the largest under `largest`; how long each took is a figure."""
    found = {}
    for size in dict.fromkeys((GM_1, GM_10, scale.largest)):
        began = time.perf_counter()
        project = load.load(size)
        rows = (200 + 430) * size.times
        note = f"about {rows:,} decisions and memories, copied in"
        report.add(f"load {size.name}", time.perf_counter() - began, "s", note=note)
        found[size.name] = Loaded(project, Agent.objects.get(project=project, key="a0"))
    began = time.perf_counter()
    load.analyse()
    report.add("vacuum and analyse", time.perf_counter() - began, "s")
    return {**found, "largest": found[scale.largest.name]}


def allow_all(project: Project) -> Project:
    """A policy under which the whole eligible set is in the block."""
    project.max_items, project.max_tokens = 1_000, 200_000
    project.save(update_fields=["max_items", "max_tokens"])
    return project


def database_version() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return f"PostgreSQL {cursor.fetchone()[0]}"
