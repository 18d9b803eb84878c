"""The verbs of sessions: start, update, end (SPEC 6, sessions). At most one session of a project is open."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.actors import Actor
from memory.errors import Conflict, NotFound, Stale
from memory.ledger.changes import Change, change
from memory.models import SessionContext
from memory.models.provenance import source_columns
from memory.recording import changed_values
from memory.values import MAX_FOCUS, MAX_TEXT, Cleaner, checked_text, clean_issues, clean_session_id

MAX_OUTCOMES = 8_000
"""Characters that outcome lines of runs may take in a session's summary; the oldest go first, the ledger keeps them all."""
_OUTCOME = re.compile(r"\[run [0-9a-f-]{36}\] ")


@dataclass(frozen=True, slots=True)
class SessionFields:
    """What a caller may say of a session; None leaves a field as it is."""

    focus_area: str | None = None
    active_issues: Iterable[str] | None = None
    summary: str | None = None
    serialized_state: str | None = None


def start_session(
    *, project_id: UUID, actor: Actor, session_id: str, fields: SessionFields = SessionFields(), now: datetime
) -> SessionContext:
    """Open a session and close the open one in the same transaction. Raises Invalid; Conflict for an id that exists, which closes nothing."""
    with Cleaner() as clean:
        values = _cleaned(clean, fields)
        wanted = clean("session_id", clean_session_id, session_id)
    with change(project_id, actor, now) as opened:
        if existing := _named(opened, wanted):
            raise Conflict("A session with this id exists.", existing)
        if current := open_session(opened):
            opened.update(current, "session.end", _ending(current, opened))
        return _open(opened, wanted, actor, values)


def update_session(
    *,
    project_id: UUID,
    actor: Actor,
    session_id: str,
    fields: SessionFields,
    end: bool = False,
    revision: int | None = None,
    now: datetime,
) -> SessionContext:
    """Change a session, and end it if asked. `revision` names what was read, where somebody edits a whole text.

    Raises Invalid, NotFound, Conflict when it has ended, Stale when it changed since `revision`.
    """
    with Cleaner() as clean:
        values = _cleaned(clean, fields)
    with change(project_id, actor, now) as opened:
        session = _named(opened, session_id.strip())
        if session is None:
            raise NotFound
        if revision not in (None, session.revision):
            raise Stale(session)
        return _write(opened, session, values, end)


def update_current_session(
    *,
    project_id: UUID,
    actor: Actor,
    session_id: str | None = None,
    fields: SessionFields,
    end: bool = False,
    now: datetime,
) -> tuple[SessionContext, bool]:
    """Change the open session, or start one when none is open; the session and whether it is new (`update_session`).

    A new session takes `session_id`, or one made of the time. Raises Invalid, Conflict when `session_id` is not the open one.
    """
    with Cleaner() as clean:
        values = _cleaned(clean, fields)
        wanted = clean("session_id", clean_session_id, session_id) if session_id is not None else None
    with change(project_id, actor, now) as opened:
        current = open_session(opened)
        if current is not None:
            if wanted not in (None, current.session_id):
                raise Conflict("Another session is open.", current)
            return _write(opened, current, values, end), False
        if wanted is not None and (existing := _named(opened, wanted)):
            raise Conflict("This session has ended.", existing)
        session = _open(opened, wanted or _free_id(opened), actor, values)
        return (_write(opened, session, {}, end) if end else session), True


def append_outcome(opened: Change, run_id: UUID, text: str) -> SessionContext | None:
    """Add `[run {id}] {text}` to the open session's summary as one line; None when no session is open (SPEC 6, Scribe).

    Older outcome lines make room, so that a long session still fits a prompt; what people and agents wrote is never touched.
    Raises Conflict `session_full` when there is no room even so.
    """
    session = open_session(opened)
    if session is None:
        return None
    line = f"[run {run_id}] {' '.join(text.split())}"
    kept = session.summary.split("\n") if session.summary else []
    for old in [line for line in kept if _OUTCOME.match(line)]:
        if _outcomes([*kept, line]) <= MAX_OUTCOMES and len("\n".join([*kept, line])) <= MAX_TEXT:
            break
        kept.remove(old)
    summary = "\n".join([*kept, line])
    if len(summary) > MAX_TEXT:
        raise Conflict("The session's summary has no room for another line.", session, code="session_full")
    return _write(opened, session, {"summary": summary}, end=False)


def _outcomes(lines: list[str]) -> int:
    return sum(len(line) for line in lines if _OUTCOME.match(line))


def end_session(opened: Change, session: SessionContext) -> SessionContext:
    """Close a session inside an open change. Raises Conflict when it has ended."""
    return _write(opened, session, {}, end=True)


def open_session(opened: Change) -> SessionContext | None:
    """The open session of the locked project."""
    return SessionContext.objects.filter(project=opened.project, ended_at__isnull=True).first()


def _named(opened: Change, session_id: str) -> SessionContext | None:
    return SessionContext.objects.filter(project=opened.project, session_id=session_id).first()


def _free_id(opened: Change) -> str:
    made = f"session-{opened.now:%Y%m%d-%H%M%S}"
    taken = set(
        SessionContext.objects.filter(project=opened.project, session_id__startswith=made).values_list(
            "session_id", flat=True
        )
    )
    number = 1
    while (name := made if number == 1 else f"{made}-{number}") in taken:
        number += 1
    return name


def _open(opened: Change, session_id: str, actor: Actor, values: dict[str, Any]) -> SessionContext:
    source = source_columns(actor.provenance)
    session = SessionContext(
        project=opened.project, session_id=session_id, started_at=opened.now, **{**_EMPTY, **values}, **source
    )
    return opened.insert(session, "session.start")


_EMPTY: dict[str, Any] = {"focus_area": "", "active_issues": [], "summary": "", "serialized_state": ""}


def _write(opened: Change, session: SessionContext, values: dict[str, Any], end: bool) -> SessionContext:
    if session.ended_at is not None:
        raise Conflict("This session has ended.", session)
    values = changed_values(session, values)
    if values:
        opened.update(session, "session.update", {**values, "revision": session.revision + 1})
    if end:
        opened.update(session, "session.end", _ending(session, opened))
    return session


def _ending(session: SessionContext, opened: Change) -> dict[str, Any]:
    return {"ended_at": opened.now, "revision": session.revision + 1}


def _cleaned(clean: Cleaner, fields: SessionFields) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if fields.focus_area is not None:
        values["focus_area"] = clean("focus_area", _focus, fields.focus_area)
    if fields.active_issues is not None:
        values["active_issues"] = clean("active_issues", clean_issues, fields.active_issues)
    if fields.summary is not None:
        values["summary"] = clean("summary", checked_text, fields.summary)
    if fields.serialized_state is not None:
        values["serialized_state"] = clean("serialized_state", checked_text, fields.serialized_state)
    return values


def _focus(value: str) -> str:
    return checked_text(value, MAX_FOCUS)
