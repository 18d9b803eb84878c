"""A worker's memory over many requests (SPEC 11, section of the benchmark)."""

from __future__ import annotations

import gc
from functools import partial
from pathlib import Path

import pytest

from tests.benchmarks.asking import as_served, ask, bearer, browser
from tests.benchmarks.load import OWNER
from tests.benchmarks.measuring import Report, Work, once
from tests.benchmarks.world import Loaded, Scale

pytestmark = pytest.mark.benchmark


def test_memory_of_a_worker(loads: dict[str, Loaded], scale: Scale, report: Report) -> None:
    with as_served():
        works = the_usual(bearer(OWNER.username), browser(OWNER.username))
        warm_up = scale.requests // 10
        for number in range(warm_up):
            works[number % len(works)]()
        before = resident()
        seconds = sum(once(works[number % len(works)]) for number in range(scale.requests))
        report.add(
            f"memory after {scale.requests:,} requests", resident() - before, "MiB",
            note=f"more than after the first {warm_up:,}, of {before:,.0f} MiB",
        )  # fmt: skip
        report.add("mean of those requests", seconds / scale.requests * 1000, "ms")


def the_usual(api: dict[str, str], person: dict[str, str]) -> list[Work]:
    """What a worker answers all day: mostly contexts, lists of the API, a few pages."""
    of_api = [
        *["agents/a0/context"] * 3,
        "agents/a1/context",
        "context/decisions",
        "memory?q=broker&page_size=20",
        "decisions",
    ]
    of_pages = ["", "/decisions", "/memory"]
    return [
        *(partial(ask, "GET", f"/api/projects/gm-1/{path}", api) for path in of_api),
        *(partial(ask, "GET", f"/projects/gm-1{path}", person) for path in of_pages),
    ]


def resident() -> float:
    """MiB of memory this process has in use."""
    gc.collect()
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024
