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
