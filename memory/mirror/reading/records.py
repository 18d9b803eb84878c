"""What a tree holds, record by record (SPEC 8). Everything a record says of itself is a proposal: importing approves nothing."""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from memory.values import agent_key


@dataclass(frozen=True)
class Origin:
    """The row a record was exported from, as its marks say. `edited` says that the text is not what was exported."""

    kind: str
    id: int | None
    project: str
    revision: int | None
    edited: bool


@dataclass(frozen=True, kw_only=True)
class Record:
    """One record of one file.

    `path` is relative to the folder that holds the root, `line` counted from 1: with them `source_identity` is
    `import:{path}#L{line}`. `created` is an aware UTC time, or None when the file does not say; a record is never given the time
    of its neighbour. `place` is where a changed text is recognised, `digest` what makes two records the same. `near` names the
    first record (`path#Lline`) whose title, or text for a memory, differs in letter case only.
    """

    kind: ClassVar[str]

    path: str
    line: int
    source: str
    agent: str
    title: str
    content: str
    created: datetime | None
    place: str
    tags: tuple[str, ...] = ()
    origin: Origin | None = None
    near: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 over kind, agent identity, title and text. Stable from one import to the next, and the same for our own export."""
        return _sha([self.kind, agent_key(self.agent), *self._texts()])

    @property
    def at(self) -> str:
        return f"{self.path}#L{self.line}"

    def _texts(self) -> list[str]:
        return [self.title, self.content]


@dataclass(frozen=True, kw_only=True)
class Proposal(Record):
    """What decisions and inbox entries have in common.

    `date`, `authors` and `status_text` are as written. `rationale` is a copy of what a label or a part of the text calls so, and
    the text keeps it, unless `rationale_apart`: then the text does not hold it. `type` is one of ours or empty.
    """

    heading_raw: str = ""
    heading_level: int = 0
    authors: str | None = None
    date: str | None = None
    status_text: str | None = None
    rationale: str = ""
    rationale_apart: bool = False
    type: str = ""

    def _texts(self) -> list[str]:
        apart = [self.rationale] if self.rationale_apart and self.rationale else []
        return [self.title, self.content, *apart]


@dataclass(frozen=True, kw_only=True)
class DecisionRecord(Proposal):
    """A record of a ledger. `group_date` is the date of the heading it stands under; `created` is its own date, else that."""

    kind: ClassVar[str] = "decision"
    group_date: str | None = None


@dataclass(frozen=True, kw_only=True)
class EntryRecord(Proposal):
    """An inbox file, or one dated record of it."""

    kind: ClassVar[str] = "entry"
    slug: str
    importance: str = ""


@dataclass(frozen=True, kw_only=True)
class MemoryRecord(Record):
    """A piece of an agent's history. `title` is the heading it stood under; the text has it too, since a memory has no title.

    `section` is `learnings`, `core_context` or `log`. `bullets` and `nested` count the bullets in column 1 and the indented ones.
    """

    kind: ClassVar[str] = "memory"
    type: str
    importance: str = "medium"
    section: str = ""
    bullets: int = 0
    nested: int = 0

    def _texts(self) -> list[str]:
        # The text has its headings, and no row has a title.
        return [self.content]


@dataclass(frozen=True, kw_only=True)
class CharterRecord(Record):
    """What an agent is for. The agent is named as its charter spells it."""

    kind: ClassVar[str] = "charter"


@dataclass(frozen=True, kw_only=True)
class SessionRecord(Record):
    """`identity/now.md`: `content` is the summary, `created` when it was last updated."""

    kind: ClassVar[str] = "session"
    focus_area: str = ""
    active_issues: tuple[str, ...] = ()
    session_id: str = ""

    def _texts(self) -> list[str]:
        return [self.focus_area, json.dumps(self.active_issues), self.content]


KINDS = ("decision", "entry", "memory", "charter", "session")


def place_of(kind: str, root_path: str, heading: str) -> str:
    """Where a record stands: kind, path inside the root and heading. The same for `.squad` and `.ai-team`."""
    return _sha([kind, root_path, heading])


def _sha(parts: list[str]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
