"""Which file is which kind of memory, and which source it belongs to (SPEC 8)."""

import re
from dataclasses import dataclass

from memory.mirror.reading.report import Unread
from memory.mirror.reading.tree import CONTEXT_ROOT

SOURCES = ("ledger", "inbox", "agents", "session", "second_ledger", "archives", "backups")
"""All sources, in the order they are read: of two equal records the one in the earlier source is taken."""
DEFAULT_SOURCES = frozenset(SOURCES[:4])

READERS = ("ledger", "document", "inbox", "charter", "history", "focus", "ours")


@dataclass(frozen=True)
class Place:
    """A file that is read: by which reader, for which source; `agent` is the folder's name for charters and histories."""

    source: str
    reader: str
    agent: str = ""


_BACKUP = re.compile(
    r"\.(?:original|backup|bak|old|orig)\.md$|\.md\.(?:bak|orig|old|original)$", re.IGNORECASE
)
_ARCHIVE = re.compile(r"archive", re.IGNORECASE)
_LEDGER_AT_ROOT = re.compile(r"decisions[-_.].*\.md$|(?:archive|archives)/.*decisions.*\.md$", re.IGNORECASE)
_HISTORY = re.compile(r"history(?:[-_.].*)?\.md$", re.IGNORECASE)
_LOGS = ("log", "logs", "orchestration-log", "orchestration-logs", "sessions")
_FORMER = ("_alumni", "_archive", "_archived", "_retired")


def place_of_file(path: str, root: str) -> Place | Unread:
    """What to do with the file at `path` (as in `SourceFile.path`)."""
    top, _, inside = path.partition("/")
    if top == CONTEXT_ROOT:
        mirror = inside in ("context/boundaries.md", "context/patterns.md")
        return (
            Place("ledger" if "boundaries" in inside else "agents", "ours")
            if mirror
            else Unread(path, "not_memory")
        )
    backup = bool(_BACKUP.search(inside))
    if not inside.endswith(".md") and not backup:
        return Unread(path, "not_markdown")
    plain = re.sub(r"\.md$", "", _BACKUP.sub("", inside)) + ".md" if backup else inside
    place = _place(path, plain)
    return Place("backups", place.reader, place.agent) if backup and isinstance(place, Place) else place


def _place(path: str, inside: str) -> Place | Unread:
    folder = inside.split("/", 1)[0]
    if folder == "decisions" and "/" in inside:
        return _decisions_folder(path, inside.removeprefix("decisions/"))
    if folder == "agents" and "/" in inside:
        return _agents_folder(path, inside.split("/")[1:])
    if inside == "decisions.md":
        return Place("ledger", "ledger")
    if inside == "identity/now.md":
        return Place("session", "focus")
    if _LEDGER_AT_ROOT.match(inside):
        return Place("archives", "ledger")
    if folder == "templates":
        return Unread(path, "template")
    return Unread(path, "log" if folder in _LOGS else "not_memory")


def _decisions_folder(path: str, inside: str) -> Place | Unread:
    name = inside.rsplit("/", 1)[-1]
    if name.lower() == "readme.md":
        return Unread(path, "not_memory")
    if inside == "decisions.md":
        return Place("second_ledger", "ledger")
    if inside.startswith("inbox/"):
        return Place("inbox" if inside.count("/") == 1 else "archives", "inbox")
    if _ARCHIVE.search(inside):
        return Place("archives", "ledger")
    # One decision for each file, beside the inbox.
    return Place("second_ledger" if "/" not in inside else "archives", "document")


def _agents_folder(path: str, parts: list[str]) -> Place | Unread:
    former = parts[0] in _FORMER
    rest = parts[1:] if former else parts
    if len(rest) != 2 or rest[0].startswith("_"):
        return Unread(path, "not_memory")
    agent, name = rest
    if name == "charter.md":
        return Place("archives" if former else "agents", "charter", agent)
    if not _HISTORY.match(name):
        return Unread(path, "not_memory")
    return Place("archives" if former or name != "history.md" else "agents", "history", agent)
