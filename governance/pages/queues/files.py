"""Import and export: what lies in the workspace, and an import's report as the page shows it (SPEC 8; SPEC 9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from types import MappingProxyType

from django.conf import settings

from memory.errors import ExportFailed
from memory.mirror.reading.import_report import ImportReport, Taken
from memory.mirror.reading.report import Skipped
from memory.mirror.reading.sources import SOURCES
from memory.mirror.writing.manifest import Manifest
from memory.mirror.writing.workspace import last_export
from memory.models import Project

SHOWN = 5_000
"""Lines of each list of a report that a page names; its counts count all, and the command prints all."""

WHY = MappingProxyType(
    {
        "already_imported": "this very text was imported before",
        "already_known": "the row it comes from is here",
        "boilerplate": "words every such file has",
        "charter_exists": "the agent has a charter",
        "comment": "a comment",
        "decider_required": "only an owner may say what an agent is for",
        "duplicate": "the same text as an earlier one",
        "empty": "nothing in it",
        "invalid": "no row can hold it",
        "log": "a log",
        "not_a_file": "no ordinary file",
        "not_a_record": "a heading of a group",
        "not_markdown": "no Markdown",
        "not_memory": "holds no memory",
        "other_root": "an older folder beside the one that was read",
        "preamble": "text before the first record",
        "source_not_selected": "its source was not chosen",
        "symlink": "a link; links are never followed",
        "template": "a template",
        "too_large": "too large",
        "too_long": "longer than a row may be",
        "too_many_lines": "too many lines",
        "unreadable": "cannot be read",
    }
)
"""The reasons of a report in words."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """The project's folder on the server: what the last export left there, or why that cannot be known."""

    there: bool
    last: Manifest | None = None
    at: datetime | None = None
    problem: str = ""


def workspace_of(project: Project) -> Workspace:
    """The workspace as it is. No query; reads one file."""
    if not settings.AGENTWEAVER_WORKSPACE_ROOT:
        return Workspace(there=False)
    try:
        last = last_export(project)
    except ExportFailed as problem:
        return Workspace(there=True, problem=problem.detail)
    return Workspace(there=True, last=last, at=_moment(last.exported_at) if last else None)


def _moment(written: str) -> datetime | None:
    """The manifest lies where others may write: a time that is none is not shown."""
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


@dataclass(frozen=True, slots=True)
class SourceCount:
    """A source with the records it holds: taken when it is `chosen`, otherwise left out."""

    name: str
    count: int
    chosen: bool


@dataclass(frozen=True, slots=True)
class FileTaken:
    """What came, or would come, out of one file."""

    path: str
    items: Sequence[Taken]


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A report in the order a person asks: how much, from where, what exactly, what not and why."""

    report: ImportReport
    sources: Sequence[SourceCount]
    taken: Sequence[FileTaken]
    skipped: Sequence[Skipped]
    reasons: Sequence[tuple[str, int]]

    @property
    def more_taken(self) -> int:
        return max(self.report.taken - SHOWN, 0)

    @property
    def more_skipped(self) -> int:
        return max(self.report.skipped - SHOWN, 0)


def report_page(report: ImportReport, chosen: Collection[str]) -> ReportPage:
    """An import's report for the page. No query."""
    shown = sorted(report.taken_items[:SHOWN], key=lambda item: (item.path, item.line))
    return ReportPage(
        report=report,
        sources=[SourceCount(name, _records_of(report, name), name in chosen) for name in SOURCES],
        taken=[FileTaken(path, list(items)) for path, items in groupby(shown, key=lambda item: item.path)],
        skipped=report.skipped_items[:SHOWN],
        reasons=Counter(report.skipped_by_reason).most_common(),
    )


def _records_of(report: ImportReport, source: str) -> int:
    """Records a source would give, whether it was chosen or not."""
    taken = sum(file.taken for file in report.files if file.source == source)
    return taken + report.not_selected.get(source, 0)
