"""Small charts as numbers for an SVG that the template draws; the same figures always stand beside them as text. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 300
HEIGHT = 60


@dataclass(frozen=True, slots=True)
class Curve:
    """A line over equal steps, in a box of 300 by 60 units with zero at the bottom."""

    line: str
    area: str
    most: int


def curve(values: Sequence[int]) -> Curve:
    """The points of the line, and of the area below it."""
    most = max([*values, 1])
    step = WIDTH / max(len(values) - 1, 1)
    points = [(index * step, HEIGHT - value / most * HEIGHT) for index, value in enumerate(values)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Curve(line, f"0,{HEIGHT} {line} {WIDTH},{HEIGHT}", most)


@dataclass(frozen=True, slots=True)
class Bar:
    """One part of a budget, drawn where the part before it ended, in a box 300 units wide. `share` is per cent of the limit."""

    name: str
    value: int
    x: float
    width: float
    share: int


@dataclass(frozen=True, slots=True)
class Bars:
    """Parts that add up against a limit. `limit_x` is where the limit stands: at the right edge unless the parts go past it."""

    bars: tuple[Bar, ...]
    total: int
    limit: int
    limit_x: float

    @property
    def is_over(self) -> bool:
        return self.total > self.limit


def bars(parts: Sequence[tuple[str, int]], limit: int) -> Bars:
    """The parts one after the other. A limit of nothing is drawn as one unit."""
    total = sum(value for _, value in parts)
    scale = WIDTH / max(total, limit, 1)
    drawn, at = [], 0
    for name, value in parts:
        drawn.append(
            Bar(
                name, value, round(at * scale, 1), round(value * scale, 1), round(value * 100 / max(limit, 1))
            )
        )
        at += value
    return Bars(tuple(drawn), total, limit, round(limit * scale, 1))
