"""A compile in process: against the same rows read by hand, and as the ledger grows (SPEC 11)."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import psycopg
import pytest

from memory.compiling import envelope
from memory.compiling.compiler import compile_context
from memory.models import Project
from tests.benchmarks.asking import statements
from tests.benchmarks.by_hand import by_hand
from tests.benchmarks.load import CORE, DECISIONS, ELIGIBLE
from tests.benchmarks.measuring import Report, Work, interleaved
from tests.benchmarks.world import Loaded, Scale, allow_all

pytestmark = pytest.mark.benchmark


def test_against_the_same_rows_by_hand(
    loads: dict[str, Loaded], scale: Scale, report: Report, raw: psycopg.Connection[Any]
) -> None:
    loaded = loads["GM-1"]
    allow_all(loaded.project)
    read = by_hand(raw, loaded)
    assert same_rows(loaded, read()) == ELIGIBLE
    compiled = partial(compile_context, loaded.project, "a0")
    times = interleaved(scale.rounds, {"compiled": compiled, "by_hand": read})
    report.ratio(
        "compile GM-1 / by hand", times, "compiled", "by_hand", 1.5, f"{ELIGIBLE} rows, all in the block"
    )


def test_under_a_policy_with_little_room(
    loads: dict[str, Loaded], scale: Scale, report: Report, raw: psycopg.Connection[Any]
) -> None:
    loaded = loads["GM-1"]
    project = Project.objects.get(pk=loaded.project.pk)
    project.max_items, project.max_tokens = 20, 8_000
    read, few = by_hand(raw, loaded), by_hand(raw, loaded, learnings=False)
    compiled = partial(compile_context, project, "a0")
    times = interleaved(scale.rounds, {"compiled": compiled, "by_hand": read, "few": few})
    note = f"{DECISIONS + CORE} rows fit into 20 items and 8,000 tokens, {ELIGIBLE} are read"
    report.ratio("compile GM-1, default policy / rows read by hand", times, "compiled", "by_hand", 1.5, note)
    report.ratio("compile GM-1, default policy / only the rows that fit", times, "compiled", "few")


def same_rows(loaded: Loaded, dumped: str) -> int:
    """How many rows both hold, the same in the same order, whatever else they show."""
    text = compile_context(loaded.project, "a0").text
    assert text is not None
    compiled, read = envelope.parse(text), json.loads(dumped)
    for kind in ("decisions", "memory"):
        assert [row["content"] for row in compiled[kind]] == [row["content"] for row in read[kind]]
    assert (compiled["session"] is None) == (read["session"] is None)
    return len(read["decisions"]) + len(read["memory"]) + (read["session"] is not None)


def test_as_the_ledger_grows(loads: dict[str, Loaded], scale: Scale, report: Report) -> None:
    sizes = ["GM-1", "GM-10", *(["GM-1000"] if "GM-1000" in loads else [])]
    for name in sizes:
        allow_all(loads[name].project)
    works: dict[str, Work] = {name: partial(compile_context, loads[name].project, "a0") for name in sizes}
    times = interleaved(scale.rounds, works)
    for name in sizes[1:]:
        report.ratio(f"compile {name} / GM-1", times, name, "GM-1", 1.2)
    counts = {name: len(statements(work)) for name, work in works.items()}
    assert len(set(counts.values())) == 1, counts
    report.add("statements of a compile, at any size", counts["GM-1"], "", 4)
