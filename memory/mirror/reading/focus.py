"""`identity/now.md` to a session (SPEC 8). An old one is read like any other: whether it may stand is not decided here (B12)."""

import re

from memory.mirror.dates import find_stamp
from memory.mirror.reading.collecting import Collector
from memory.mirror.reading.labels import first_value, labels
from memory.mirror.reading.markdown import FrontMatter, Outline, front_matter, outline
from memory.mirror.reading.records import SessionRecord
from memory.mirror.wording import one_line
from memory.values import MAX_FOCUS, MAX_ISSUE, MAX_ISSUES

_HELD = {"updated_at", "focus_area", "active_issues", "session_id"}
_TITLE = re.compile(r"(?:what we(?:'|’)re focused on|now|current focus|focus)\W*$", re.IGNORECASE)
_SEED = re.compile(r"getting started\. updated by coordinator at session start\.?\s*$", re.IGNORECASE)
_FOCUS_LABELS = ("focus", "current focus", "focus area")


def read_focus(text: str, into: Collector) -> None:
    """Takes the one session of a now.md, unless it is as it was created."""
    lines = text.split("\n")
    matter = front_matter(lines)
    outlined = outline("\n" * matter.stop + "\n".join(lines[matter.stop :]) if matter else text)
    summary = _summary(outlined, matter.stop if matter else 0)
    if _SEED.match(summary) or not (summary.strip() or matter):
        into.skip("session", 1, summary or into.inside, "boilerplate" if summary.strip() else "empty")
        return
    into.take(_session(outlined, matter, summary, into))


def _session(outlined: Outline, matter: FrontMatter | None, summary: str, into: Collector) -> SessionRecord:
    stamp = find_stamp(matter.text("updated_at", "last_updated", "date")) if matter else None
    if matter and set(matter.values) - _HELD:
        # Values no row has a place for stay with the text.
        summary = f"---\n{matter.raw}\n---\n\n{summary}".rstrip("\n")
    return SessionRecord(
        path=into.path,
        line=1,
        source=into.place.source,
        agent="",
        title="",
        content=summary,
        created=stamp.at if stamp else None,
        place=into.place_for("session", ""),
        focus_area=_focus(outlined, matter, into),
        active_issues=_issues(matter, into),
        session_id=matter.text("session_id") if matter else "",
    )


def _summary(outlined: Outline, start: int) -> str:
    """The text without its front matter and without a title that says nothing."""
    first = outlined.first_text(start, len(outlined.lines))
    title = next((h for h in outlined.headings if first is not None and h.line == first + 1), None)
    if title and _TITLE.match(title.text):
        start = title.line
    return outlined.body(start, len(outlined.lines))


def _focus(outlined: Outline, matter: FrontMatter | None, into: Collector) -> str:
    found = labels(outlined, matter.stop if matter else 0, len(outlined.lines))
    focus = (matter.text("focus_area") if matter else "") or first_value(found, *_FOCUS_LABELS) or ""
    focus = one_line(focus)
    if len(focus) > MAX_FOCUS:
        into.note(1, "focus_cut", f"{len(focus)} characters, at most {MAX_FOCUS}")
    return focus[:MAX_FOCUS]


def _issues(matter: FrontMatter | None, into: Collector) -> tuple[str, ...]:
    given = matter.values.get("active_issues", []) if matter else []
    if isinstance(given, str):
        # Front matter that is no valid YAML is read by lines: the list is still one line of text.
        given = [part.strip(" '\"") for part in given.strip("[] ").split(",")]
    issues = tuple(one_line(issue) for issue in given if issue.strip())
    if len(issues) > MAX_ISSUES or any(len(issue) > MAX_ISSUE for issue in issues):
        into.note(1, "issues_cut", f"{len(issues)} issues, at most {MAX_ISSUES} of {MAX_ISSUE} characters")
    return tuple(issue[:MAX_ISSUE] for issue in issues[:MAX_ISSUES])
