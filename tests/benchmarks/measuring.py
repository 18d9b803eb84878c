"""Times of functions against each other, and the table of figures they end in.

A machine that is busy with other things makes single times worthless. So whatever is compared runs in turns, round after round,
and a ratio is that of the shortest times: what disturbs a round only ever adds to it. Medians are kept beside them.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Work = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Times:
    """How long one of the compared functions took, in milliseconds."""

    shortest: float
    median: float

    @classmethod
    def of(cls, seconds: list[float]) -> Times:
        return cls(min(seconds) * 1000, statistics.median(seconds) * 1000)


def interleaved(rounds: int, works: Mapping[str, Work], warm_up: int = 8) -> dict[str, Times]:
    """Each function once a round. PostgreSQL settles on a plan after five executions: these are among the warm-up."""
    for _ in range(warm_up):
        for work in works.values():
            work()
    seconds: dict[str, list[float]] = {name: [] for name in works}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, work in works.items():
                seconds[name].append(once(work))
    finally:
        gc.enable()
    return {name: Times.of(taken) for name, taken in seconds.items()}


def once(work: Work) -> float:
    """Seconds that one call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value beside its goal, which it may not exceed; None where SPEC 11 names none."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        return None if self.goal is None else self.value <= self.goal


@dataclass
class Report:
    """Everything measured in one run, with what the machine was doing meanwhile."""

    is_quick: bool
    figures: list[Figure] = field(default_factory=list)
    database: str = ""
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    load_at_start: tuple[float, ...] = field(default_factory=os.getloadavg)

    def add(self, name: str, value: float, unit: str, goal: float | None = None, note: str = "") -> None:
        self.figures.append(Figure(name, value, unit, goal, note))
        # A whole run takes minutes: whoever waits sees it go on.
        print(f"\n  {name}: {_shown(value)} {unit}", end="", flush=True)

    def ratio(
        self, name: str, times: dict[str, Times], of: str, to: str, goal: float | None = None, note: str = ""
    ) -> None:
        """How many times as long as `to` `of` takes."""
        value = times[of].shortest / times[to].shortest
        told = f"{_shown(times[of].shortest)} ms to {_shown(times[to].shortest)} ms; medians"
        medians = f"{_shown(times[of].median)} to {_shown(times[to].median)}"
        self.add(name, value, "×", goal, "; ".join(filter(None, (f"{told} {medians}", note))))

    def table(self) -> str:
        """For the screen. A quick run says nothing of goals: its tables are too small to mean anything."""
        width = max(len(figure.name) for figure in self.figures)
        lines = [f"{'figure':{width}}  {'value':>12}  {'goal':>8}  {'met':4}"]
        lines += [self._line(figure, width) for figure in self.figures]
        return "\n".join(lines)

    def _line(self, figure: Figure, width: int) -> str:
        goal = "" if figure.goal is None or self.is_quick else f"≤ {figure.goal:g}"
        met = "" if not goal else ("yes" if figure.met else "NO")
        value = f"{_shown(figure.value)} {figure.unit}"
        line = f"{figure.name:{width}}  {value:>12}  {goal:>8}  {met:4}"
        return f"{line}  {figure.note}".rstrip()

    def save(self, file: Path) -> None:
        told = {
            "began": self.began.isoformat(timespec="seconds"),
            "seconds": round((datetime.now(UTC) - self.began).total_seconds()),
            "quick": self.is_quick,
            "machine": {
                "processors": os.cpu_count(), "python": platform.python_version(), "database": self.database,
                "load_at_start": self.load_at_start, "load_at_end": os.getloadavg(),
            },
            "figures": [{**asdict(figure), "met": None if self.is_quick else figure.met} for figure in self.figures],
        }  # fmt: skip
        file.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.2f}"
