"""Records of our own export to records (SPEC 8). Their marks say what they are; they are as untrusted as any other file."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from memory.enums import DecisionType, EntryType, Importance, MemoryType
from memory.mirror.dates import find_stamp
from memory.mirror.marks import FoundRecord
from memory.mirror.names import UNKNOWN
from memory.mirror.reading.collecting import Collector
from memory.mirror.reading.records import (
    DecisionRecord,
    EntryRecord,
    MemoryRecord,
    Origin,
    Record,
    SessionRecord,
)
from memory.mirror.wording import cut_title, one_line
from memory.values import (
    MAX_FOCUS,
    MAX_ISSUE,
    MAX_ISSUES,
    clean_name,
    clean_slug,
    clean_title,
    text_problem,
)

_SURROGATE = re.compile(r"[\ud800-\udfff]")


def take_found(found: FoundRecord, into: Collector) -> None:
    """Takes a marked record. Text that was edited by hand is taken as it is now, with a note."""
    line = found.start + 1
    if found.edited:
        into.note(line, "edited_by_hand", "the text is not what was exported")
    if found.head_edited:
        into.note(line, "visible_lines_changed", "only the text between the marks is read")
    into.take(_MAKERS[found.record.kind](found, into))


def _decision(found: FoundRecord, into: Collector) -> Record:
    return DecisionRecord(
        **_common(found, into),
        **_proposed(found),
        type=_listed(found, "type", DecisionType.values),
    )


def _entry(found: FoundRecord, into: Collector) -> Record:
    try:
        slug = clean_slug(_text(found, "slug"))
    except ValueError:
        slug = f"entry-{found.record.id or found.start + 1}"
        into.note(found.start + 1, "slug_changed", f"it became {slug}")
    return EntryRecord(
        **_common(found, into),
        **_proposed(found),
        slug=slug,
        type=_listed(found, "type", EntryType.values) or str(EntryType.TECHNICAL),
        importance=_listed(found, "importance", Importance.values),
    )


def _memory(found: FoundRecord, into: Collector) -> Record:
    return MemoryRecord(
        **_common(found, into),
        type=_listed(found, "type", MemoryType.values) or str(MemoryType.LEARNING),
        importance=_listed(found, "importance", Importance.values) or str(Importance.MEDIUM),
        section="export",
    )


def _session(found: FoundRecord, into: Collector) -> Record:
    issues = found.record.data.get("active_issues")
    given = [_sound(item) for item in issues if isinstance(item, str)] if isinstance(issues, list) else []
    return SessionRecord(
        **_common(found, into),
        focus_area=_fitting(_text(found, "focus_area"), MAX_FOCUS),
        active_issues=tuple(_fitting(issue, MAX_ISSUE) for issue in given[:MAX_ISSUES]),
        session_id=_text(found, "session_id"),
    )


_MAKERS: dict[str, Callable[[FoundRecord, Collector], Record]] = {
    "decision": _decision,
    "entry": _entry,
    "memory": _memory,
    "session": _session,
}


def _common(found: FoundRecord, into: Collector) -> dict[str, Any]:
    record = found.record
    tags = record.data.get("tags")
    origin = Origin(record.kind, record.id, _text(found, "project"), _number(found, "revision"), found.edited)
    return {
        "path": into.path,
        "line": found.start + 1,
        "source": into.place.source,
        "agent": _agent(found),
        "title": _title(_text(found, "title")),
        "content": record.text,
        "created": _created(_text(found, "created")),
        "place": into.place_for(record.kind, f"exported {record.id}"),
        "tags": into.tags(found.start + 1, [str(tag) for tag in tags]) if isinstance(tags, list) else (),
        "origin": origin,
    }


def _proposed(found: FoundRecord) -> dict[str, Any]:
    rationale = found.record.rationale
    stamp = find_stamp(_text(found, "created"))
    return {"rationale": rationale or "", "rationale_apart": True, "date": stamp.raw if stamp else None}


def _agent(found: FoundRecord) -> str:
    try:
        return clean_name(_text(found, "agent"))
    except ValueError:
        return UNKNOWN if found.record.kind != "session" else ""


def _text(found: FoundRecord, key: str) -> str:
    value = found.record.data.get(key)
    return _sound(value) if isinstance(value, str) else ""


def _sound(value: str) -> str:
    """JSON can spell half a character, which nothing can store."""
    return _SURROGATE.sub("\ufffd", value)


def _title(given: str) -> str:
    """The title as the row had it; a forged one that no row could have is made to fit."""
    try:
        return clean_title(given)
    except ValueError:
        return cut_title(one_line(given))


def _fitting(given: str, limit: int) -> str:
    return given if text_problem(given, limit) is None else one_line(given)[:limit]


def _created(given: str) -> datetime | None:
    """The time to the microsecond, as we write it; any other date as everywhere."""
    try:
        exact = datetime.fromisoformat(given)
        return exact.astimezone(UTC) if exact.tzinfo else exact.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        stamp = find_stamp(given)
        return stamp.at if stamp else None


def _number(found: FoundRecord, key: str) -> int | None:
    value = found.record.data.get(key)
    return value if type(value) is int and 0 < value < 2**31 else None


def _listed(found: FoundRecord, key: str, values: list[str]) -> str:
    value = _text(found, key)
    return value if value in values else ""
