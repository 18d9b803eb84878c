"""What happened to a row and who was told it, as a page draws it (SPEC 9: history with diffs; which runs were told it)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from governance.deciding.differences import FieldChange, fields_between
from governance.pages.views.rows import FIELDS, Row
from memory.ledger.changes import KINDS, target_of
from memory.ledger.history import Revision, ToldRuns, revisions, told_runs
from memory.models import Project

NAMED = 5
"""Runs named in a sentence; the row's page names more."""


@dataclass(frozen=True, slots=True)
class Step:
    """One event of a row's history with what it changed in the text."""

    event: Revision
    changes: Sequence[FieldChange]


def steps_of(project: Project, row: Row) -> list[Step]:
    """The history of a row, newest first. One query."""
    steps: list[Step] = []
    values: dict[str, Any] = {}
    for event in revisions(project, target_of(row)):
        steps.append(Step(event, fields_between(values, event.values, FIELDS) if values else ()))
        values = event.values
    return steps[::-1]


def told(project: Project, row: Row) -> ToldRuns:
    """The runs that were told a row. At most three queries."""
    return told_runs(project, KINDS[type(row)], row.pk)


def told_sentence(project: Project, row: Row) -> str:
    """Who worked with what is now withdrawn: `2 runs had been told it: Ana (run 0a1b2c3d), Ben (run 4e5f6a7b).`"""
    found = told(project, row)
    if not found.total:
        return "No run had been told it."
    names = ", ".join(f"{run.agent_name} (run {str(run.run_id)[:8]})" for run in found.runs[:NAMED])
    more = f" and {found.total - NAMED} more" if found.total > NAMED else ""
    return f"{found.total} run{'s' if found.total > 1 else ''} had been told it: {names}{more}."
