"""The columns of an imported record's row, cleaned like anybody's (SPEC 8, Import)."""

from __future__ import annotations

from typing import Any

from memory.enums import DecisionType, Importance
from memory.mirror.reading.records import (
    DecisionRecord,
    EntryRecord,
    MemoryRecord,
    Proposal,
    Record,
    SessionRecord,
)
from memory.values import checked_text, clean_name, clean_slug, clean_tags, clean_title


def values_of(record: Record) -> dict[str, Any]:
    """The columns of a record's row, cleaned like anybody's; `agent` is a name. Raises ValueError with what no row can hold."""
    values: dict[str, Any] = (
        {"agent": clean_name(record.agent)} if not isinstance(record, SessionRecord) else {}
    )
    if isinstance(record, Proposal):
        values |= _proposed(record)
    if isinstance(record, DecisionRecord):
        return values | {"type": record.type if record.origin and record.type else DecisionType.TECHNICAL}
    if isinstance(record, EntryRecord):
        importance = record.importance or Importance.HIGH
        return values | {"slug": clean_slug(record.slug), "type": record.type, "importance": importance}
    if isinstance(record, MemoryRecord):
        content = checked_text(record.content, required=True)
        return values | {
            "type": record.type, "importance": record.importance, "content": content, "tags": clean_tags(record.tags),
        }  # fmt: skip
    if isinstance(record, SessionRecord):
        return _session_values(record)
    return values | {"charter": checked_text(record.content)}


def _proposed(record: Proposal) -> dict[str, Any]:
    """A rationale that the text holds as well is not written twice: it would stand twice in every prompt."""
    return {
        "title": clean_title(record.title or "Untitled"),
        "content": checked_text(record.content, required=True),
        "rationale": checked_text(record.rationale) if record.rationale_apart else "",
        "tags": clean_tags(record.tags),
    }


def _session_values(record: SessionRecord) -> dict[str, Any]:
    return {
        "focus_area": checked_text(record.focus_area),
        "active_issues": [checked_text(issue) for issue in record.active_issues],
        "summary": checked_text(record.content),
    }
