"""Rows to the files of the mirror (SPEC 8, Export). Pure: what is written is a function of the rows alone, so unchanged rows give the same bytes.

A row that came from another ledger's export keeps that row's id and date in its marks; one whose file gave no date has none. So an
export of an import is the export it came from.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import yaml

from memory.enums import DecisionType, MemoryType
from memory.mirror.marks import MarkedRecord, wrap
from memory.mirror.wording import one_line
from memory.mirror.writing.paths import safe_names
from memory.models import AgentMemory, Decision, DecisionInboxEntry, ImportedRecord, Project, SessionContext

LEDGER = ".squad/decisions.md"
INBOX = ".squad/decisions/inbox"
AGENTS = ".squad/agents"
NOW = ".squad/identity/now.md"
BOUNDARIES = ".agentweaver/context/boundaries.md"
PATTERNS = ".agentweaver/context/patterns.md"
MANIFEST = ".agentweaver/context/manifest.json"
MIRROR_PATH = re.compile(
    r"\.squad/(?:decisions|decisions/inbox/[^/]+|agents/[^/]+/history|identity/now)\.md"
    r"|\.agentweaver/context/(?:boundaries|patterns)\.md"
)
"""Every path the mirror may ever hold, the manifest aside."""

_NOTICE = "<!-- Written from the ledger. What is changed here by hand is a proposal until it is imported and approved. -->"
_BINDING = (DecisionType.ARCHITECTURAL, DecisionType.SCOPE)
_SECTIONS = (
    ("Core Context", MemoryType.CORE_CONTEXT),
    ("Learnings", MemoryType.LEARNING),
    ("Updates", MemoryType.UPDATE),
)

Row = Decision | AgentMemory | DecisionInboxEntry | SessionContext


@dataclass(frozen=True, slots=True)
class MirrorFile:
    """One file: its bytes, and the ids of the rows in it by kind."""

    path: str
    data: bytes = field(repr=False)
    rows: Mapping[str, list[int]]

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class Rows:
    """What the mirror holds of a project, read at one moment."""

    project: Project
    decisions: Sequence[Decision]
    entries: Sequence[DecisionInboxEntry]
    memories: Sequence[AgentMemory]
    session: SessionContext | None
    session_updated: datetime | None

    @property
    def patterns(self) -> list[AgentMemory]:
        return [memory for memory in self.memories if memory.type == MemoryType.PATTERN]

    @property
    def boundaries(self) -> list[Decision]:
        return [decision for decision in self.decisions if decision.type in _BINDING]


def render(rows: Rows) -> list[MirrorFile]:
    """Every file that has rows, in the order of their paths."""
    files = [
        *_document(LEDGER, "Decisions", _ordered(rows.decisions)),
        *_document(BOUNDARIES, "Boundaries", _ordered(rows.boundaries)),
        *_document(PATTERNS, "Patterns", _ordered(rows.patterns)),
        *_histories(rows.memories),
        *_inbox(rows.entries),
        *([_focus(rows.session, rows.session_updated)] if rows.session else []),
    ]
    return sorted(files, key=lambda file: file.path)


def _document(path: str, title: str, rows: Sequence[Row]) -> list[MirrorFile]:
    if not rows:
        return []
    return [_file(path, f"# {title}\n\n{_NOTICE}\n\n" + _records(rows), rows)]


def _file(path: str, text: str, rows: Iterable[Row]) -> MirrorFile:
    ids: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        ids[_KINDS[type(row)]].append(row.pk)
    return MirrorFile(path, text.encode(), {kind: sorted(ids[kind]) for kind in sorted(ids)})


def _histories(memories: Iterable[AgentMemory]) -> list[MirrorFile]:
    """One file for each agent, in the folder of its identity: how a name is spelled never makes a second folder."""
    by_agent: dict[str, list[AgentMemory]] = defaultdict(list)
    for memory in memories:
        if memory.type != MemoryType.PATTERN:
            by_agent[memory.agent.key].append(memory)
    folders = safe_names(by_agent)
    return [_history(f"{AGENTS}/{folders[key]}/history.md", rows) for key, rows in by_agent.items()]


def _history(path: str, memories: Sequence[AgentMemory]) -> MirrorFile:
    parts = [f"# {memories[0].agent.name}\n\n{_NOTICE}\n"]
    for title, kind in _SECTIONS:
        if chosen := _ordered([memory for memory in memories if memory.type == kind]):
            parts.append(f"## {title}\n\n" + _records(chosen))
    return _file(path, "\n".join(parts), memories)


def _inbox(entries: Iterable[DecisionInboxEntry]) -> list[MirrorFile]:
    by_slug = {entry.slug: entry for entry in entries}
    names = safe_names(by_slug)
    return [_entry(f"{INBOX}/{names[slug]}.md", entry) for slug, entry in by_slug.items()]


def _entry(path: str, entry: DecisionInboxEntry) -> MirrorFile:
    front = _front_matter(
        {"agent": entry.agent.name, "slug": entry.slug, "type": entry.type, "title": entry.title}
    )
    return _file(path, front + wrap(_marked(entry)), [entry])


def _focus(session: SessionContext, updated: datetime | None) -> MirrorFile:
    front = _front_matter(
        {
            "updated_at": _stamp(updated or session.started_at),
            "focus_area": session.focus_area,
            "active_issues": list(session.active_issues),
        }
    )
    return _file(NOW, front + wrap(_marked(session), f"# {one_line(session.focus_area) or 'Now'}"), [session])


def _front_matter(values: Mapping[str, Any]) -> str:
    """YAML that brings every string back as it was, whatever it looks like (B30)."""
    written = yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True, width=float("inf"))
    return f"---\n{written}---\n\n"


# --- records ------------------------------------------------------------------------------------------------------


def _ordered(rows: Sequence[Any]) -> list[Any]:
    """Rows without a date first (B04), then by date, then by id."""
    return sorted(rows, key=lambda row: (_created(row) or datetime.min.replace(tzinfo=UTC), row.pk))


def _records(rows: Iterable[Row]) -> str:
    return "\n".join(wrap(_marked(row), _head(row)) for row in rows)


def _marked(row: Row) -> MarkedRecord:
    project, number = _origin(row)
    data = {**_DATA[type(row)](row), "created": _stamp(_created(row)), "project": project}
    kind = _KINDS[type(row)]
    if isinstance(row, SessionContext):
        return MarkedRecord(kind, number, row.summary, None, data)
    rationale = None if isinstance(row, AgentMemory) else row.rationale or None
    return MarkedRecord(kind, number, row.content, rationale, data)


def _imported(row: Row) -> ImportedRecord | None:
    return getattr(row, "imported", None)


def _origin(row: Row) -> tuple[str, int]:
    """The ledger and the id the row first had."""
    imported = _imported(row)
    project, _, number = imported.original_id.partition(":") if imported else ("", "", "")
    return (project, int(number)) if number.isdigit() else (str(row.project_id), row.pk)


def _created(row: Row) -> datetime | None:
    """When the text was written: for an imported row what its file said, which may be nothing."""
    if imported := _imported(row):
        return imported.dated_at
    return row.started_at if isinstance(row, SessionContext) else row.created_at


def _stamp(at: datetime | None) -> str | None:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z") if at else None


def _decision_data(row: Decision) -> dict[str, Any]:
    return {"agent": row.agent.name, "title": row.title, "type": row.type, "tags": row.tags}


def _entry_data(row: DecisionInboxEntry) -> dict[str, Any]:
    return {
        "agent": row.agent.name, "slug": row.slug, "title": row.title, "type": row.type, "importance": row.importance,
        "tags": row.tags,
    }  # fmt: skip


def _memory_data(row: AgentMemory) -> dict[str, Any]:
    return {"agent": row.agent.name, "type": row.type, "importance": row.importance, "tags": row.tags}


def _session_data(row: SessionContext) -> dict[str, Any]:
    return {"session_id": row.session_id, "focus_area": row.focus_area, "active_issues": row.active_issues}


_KINDS: dict[type[Any], str] = {
    Decision: "decision", AgentMemory: "memory", DecisionInboxEntry: "entry", SessionContext: "session",
}  # fmt: skip
_DATA: dict[type[Any], Any] = {
    Decision: _decision_data,
    AgentMemory: _memory_data,
    DecisionInboxEntry: _entry_data,
    SessionContext: _session_data,
}


def _head(row: Row) -> str:
    """What a reader sees above the text."""
    created = _created(row)
    day = f"{created.astimezone(UTC):%Y-%m-%d}" if created else "undated"
    if isinstance(row, Decision):
        facts = [("Type", row.type), ("By", row.agent.name), ("Date", day), ("Tags", ", ".join(row.tags))]
        return (
            f"## {row.title}\n\n"
            + " | ".join(f"**{name}:** {value}" for name, value in facts if value)
            + "\n"
        )
    if isinstance(row, AgentMemory):
        return f"### {day} [{row.type}] {' · '.join([row.agent.name, row.importance, *row.tags])}\n"
    return ""
