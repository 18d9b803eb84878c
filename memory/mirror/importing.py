"""Files into the ledger (SPEC 8, Import): one transaction, everything it writes is legacy, and nothing is ever approved by it.

* a decision becomes `technical` unless the marks of our own export give its type; active, legacy
* a memory and what it is comes in as it was read; legacy
* an inbox file becomes a pending entry with source `legacy`, under the next free slug when another text has its slug
* a session comes in as one that ended: it is never opened, so it never replaces one (B12)
* a charter is taken only for an agent that has none, and only when the caller may say what an agent is for

Rows carry the time of the import; when the file says a text was written is kept beside it, in `ImportedRecord.dated_at`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain, count
from typing import Any
from uuid import UUID

from memory.actors import Author, imported_from
from memory.agents import agent_named, set_charter
from memory.enums import TrustState
from memory.errors import Conflict, Invalid, NotFound
from memory.ledger.changes import Change, change
from memory.mirror.columns import values_of
from memory.mirror.known import Earlier, Known, chunks, known_of, original_id
from memory.mirror.reading.import_report import ImportReport, Taken, import_report
from memory.mirror.reading.records import (
    CharterRecord,
    EntryRecord,
    Record,
    SessionRecord,
)
from memory.mirror.reading.report import Note, Skipped, TreeReading
from memory.mirror.reading.sources import DEFAULT_SOURCES
from memory.mirror.reading.squad import read_tree
from memory.mirror.reading.tree import SourceTree
from memory.mirror.wording import one_line
from memory.models import (
    Agent,
    AgentMemory,
    Decision,
    DecisionInboxEntry,
    ImportedRecord,
    Project,
    SessionContext,
)
from memory.models.provenance import source_columns
from memory.recording import first_free
from memory.values import agent_key, clean_session_id

Progress = Callable[[str, int, int], None]
"""Told the stage (`reading` or `writing`), how much is done and how much there is."""

WORDS = 120
_CHUNK = 250


def no_progress(stage: str, done: int, total: int) -> None:
    """For whoever does not watch."""


def import_tree(
    *,
    project_id: UUID,
    actor: Author,
    tree: SourceTree,
    sources: Collection[str] = DEFAULT_SOURCES,
    dry_run: bool = False,
    charters: bool = True,
    expected: str | None = None,
    progress: Progress = no_progress,
    now: datetime,
) -> ImportReport:
    """Take what a tree holds into a project's ledger, all of it or nothing; the report. A dry run writes nothing and waits for nobody.

    `charters`: whether charters are taken for agents without one; they reach a prompt as they are, so only someone who decides
    may bring them. `expected`: the `fingerprint` of a dry run; when other rows would be written now, nothing is, and Conflict is
    raised. Raises Invalid for an unknown source, NotFound, and `UnsafeTree` when the tree is over its bounds.
    """
    try:
        reading = read_tree(_watched(tree, progress), sources)
    except ValueError as unknown:
        raise Invalid({"sources": [str(unknown)]}) from unknown
    if dry_run:
        project = Project.objects.filter(pk=project_id).first()
        if project is None:
            raise NotFound
        plan = _plan(project, reading, charters)
        return _report(reading, plan, [item.taken for item in plan.items], dry_run=True)
    with change(project_id, actor, now) as opened:
        plan = _plan(opened.project, reading, charters)
        if expected is not None and expected != plan.fingerprint():
            raise Conflict("What would come in has changed since it was shown; nothing was written.")
        taken = _Writer(opened, progress, len(plan.items)).write(plan.items)
        report = _report(reading, plan, taken, dry_run=False)
        if taken:
            _note(opened, report)
    return report


def _watched(tree: SourceTree, progress: Progress) -> SourceTree:
    """The tree, telling `progress` of each file that is opened for the first time."""
    seen: set[str] = set()

    def watched(path: str, opener: Callable[[], bytes]) -> Callable[[], bytes]:
        def open_it() -> bytes:
            seen.add(path)
            progress("reading", len(seen), len(tree.files))
            return opener()

        return open_it

    files = (
        replace(file, opener=watched(file.path, file.opener)) if file.opener else file for file in tree.files
    )
    return replace(tree, files=tuple(files))


def _note(opened: Change, report: ImportReport) -> None:
    """One event that says what the others belong to."""
    counts = {"found": report.found, "taken": report.taken_by_kind, "skipped": report.skipped_by_reason}
    opened.note("project.import", f"project:{opened.project.pk}", None, {"root": report.root, **counts})


def _report(reading: TreeReading, plan: _Plan, taken: list[Taken], *, dry_run: bool) -> ImportReport:
    report = import_report(reading, taken, plan.skipped, dry_run=dry_run)
    notes = sorted((*report.notes, *plan.notes), key=lambda note: (note.path, note.line))
    return replace(report, notes=tuple(notes), fingerprint=plan.fingerprint())


# --- what is new --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Item:
    """A record that will be taken: the row's own columns, without project and agent; how it is kept and reported."""

    record: Record
    values: dict[str, Any]
    digest: str
    replaces: int | None
    taken: Taken


@dataclass
class _Plan:
    """What will be taken, oldest first in each kind, and what adds nothing."""

    known: Known
    agents: dict[str, str]
    """The charter of every agent of the project, by the agent's key."""
    charters: bool
    sessions: set[str]
    """Every session id that is taken."""
    items: list[_Item] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def add(self, record: Record) -> None:
        reason = (
            self._charter_reason(record) if isinstance(record, CharterRecord) else self.known.reason(record)
        )
        if reason:
            self._skip(record, *reason)
            return
        try:
            values = values_of(record)
        except ValueError as problem:
            self._skip(record, "invalid", str(problem))
        else:
            self._take(record, values)

    def fingerprint(self) -> str:
        """SHA-256 over every value of every row that will be written, and where it comes from."""
        digest = hashlib.sha256()
        for item in self.items:
            digest.update(repr((item.taken, item.digest, sorted(item.values.items()))).encode())
        return digest.hexdigest()

    def _take(self, record: Record, values: dict[str, Any]) -> None:
        digest, earlier = self.known.digest_for(record), self.known.replaced(record)
        if isinstance(record, EntryRecord):
            values["slug"] = self._slug(record, values)
        if isinstance(record, SessionRecord):
            values["session_id"] = self._session_id(record, digest)
        if isinstance(record, CharterRecord):
            self.agents[agent_key(record.agent)] = record.content
        else:
            self.known.digests[digest] = Earlier(0, record.at, original_id(record), {})
        if record.near:
            self.notes.append(Note(record.path, record.line, "nearly_the_same", f"as {record.near}"))
        taken = _taken(record, values, earlier)
        self.items.append(_Item(record, values, digest, earlier.id if earlier else None, taken))

    def _slug(self, record: EntryRecord, values: dict[str, Any]) -> str:
        slug = first_free(values["slug"], values["agent"], self.known.slugs)
        self.known.slugs[slug] = ("", "")
        if slug != values["slug"]:
            self.notes.append(Note(record.path, record.line, "slug_taken", f"it became {slug}"))
        return slug

    def _session_id(self, record: SessionRecord, digest: str) -> str:
        """The id its marks give it when nobody has that, else one made of its text."""
        made = f"imported-{digest[:16]}"
        names = chain(_own_session_id(record), [made], (f"{made}-{number}" for number in count(2)))
        session_id = next(name for name in names if name not in self.sessions)
        self.sessions.add(session_id)
        return session_id

    def _charter_reason(self, record: CharterRecord) -> tuple[str, str] | None:
        present = self.agents.get(agent_key(record.agent), "")
        if present == record.content:
            return "already_known", "the agent has this charter"
        if present:
            return "charter_exists", "the agent has another charter; an import never replaces one"
        return (
            None if self.charters else ("decider_required", "only who decides may say what an agent is for")
        )

    def _skip(self, record: Record, reason: str, detail: str) -> None:
        self.skipped.append(
            Skipped(record.path, record.line, record.source, record.kind, _words(record), reason, detail)
        )


def _plan(project: Project, reading: TreeReading, charters: bool) -> _Plan:
    charters_by_key = dict(Agent.objects.filter(project=project).values_list("key", "charter"))
    sessions = set(SessionContext.objects.filter(project=project).values_list("session_id", flat=True))
    plan = _Plan(known_of(project, reading.records), charters_by_key, charters, sessions)
    for record in reading.records:
        plan.add(record)
    # Undated texts first, then by date: "newest first" means something among rows of one import. Equal dates keep the files' order.
    plan.items.sort(key=lambda item: item.record.created or datetime.min.replace(tzinfo=UTC))
    return plan


def _own_session_id(record: SessionRecord) -> list[str]:
    try:
        return [clean_session_id(record.session_id)]
    except ValueError:
        return []


def _words(record: Record) -> str:
    return one_line((record.title or record.content)[: WORDS * 2])[:WORDS]


def _taken(record: Record, values: dict[str, Any], earlier: Earlier | None) -> Taken:
    return Taken(
        path=record.path,
        line=record.line,
        kind=record.kind,
        agent=record.agent,
        words=_words(record),
        slug=values.get("slug", ""),
        replaces=earlier.at if earlier else "",
        near=record.near,
    )


# --- writing ------------------------------------------------------------------------------------------------------


@dataclass
class _Writer:
    """Writes the planned rows inside an open change."""

    opened: Change
    progress: Progress
    total: int
    done: int = 0
    agents: dict[str, Agent] = field(default_factory=dict)

    def write(self, items: list[_Item]) -> list[Taken]:
        known = Agent.objects.filter(project=self.opened.project)
        self.agents = {agent.key: agent for agent in known}
        taken: dict[int, Taken] = {}
        for kind in ("charter", "decision", "memory", "entry", "session"):
            chosen = [item for item in items if item.record.kind == kind]
            for chunk in chunks(chosen, _CHUNK):
                rows = self._charters(chunk) if kind == "charter" else self._rows(kind, chunk)
                taken |= {
                    id(item): replace(item.taken, id=row.pk) for item, row in zip(chunk, rows, strict=True)
                }
                self.done += len(chunk)
                self.progress("writing", self.done, self.total)
        return [taken[id(item)] for item in items]

    def _agent(self, name: str) -> Agent:
        key = agent_key(name)
        if key not in self.agents:
            self.agents[key] = agent_named(self.opened, name)
        return self.agents[key]

    def _charters(self, items: Sequence[_Item]) -> list[Agent]:
        return [
            set_charter(self.opened, self._agent(item.values["agent"]), item.values["charter"])
            for item in items
        ]

    def _rows(self, kind: str, items: Sequence[_Item]) -> list[Any]:
        made = [_MAKERS[kind](self, item) for item in items]
        rows = self.opened.insert_all(made, f"{kind}.import", compiled=kind != "entry")
        ImportedRecord.objects.bulk_create(
            [self._imported(kind, item, row) for item, row in zip(items, rows, strict=True)]
        )
        return rows

    def _imported(self, kind: str, item: _Item, row: Any) -> ImportedRecord:
        record = item.record
        return ImportedRecord(
            project=self.opened.project, path=record.path, line=record.line, digest=item.digest, place=record.place,
            dated_at=record.created, original_id=original_id(record), replaces_id=item.replaces, **{kind: row},
        )  # fmt: skip

    def _common(self, item: _Item) -> dict[str, Any]:
        source = source_columns(imported_from(item.record.path, item.record.line))
        named = {"agent": self._agent(item.values["agent"])} if "agent" in item.values else {}
        return {"project": self.opened.project, **item.values, **named, **source}

    def _stamped(self, item: _Item) -> dict[str, Any]:
        return {**self._common(item), "created_at": self.opened.now, "updated_at": self.opened.now}

    def decision(self, item: _Item) -> Decision:
        return Decision(**self._stamped(item), trust_state=TrustState.LEGACY)

    def memory(self, item: _Item) -> AgentMemory:
        return AgentMemory(**self._stamped(item), trust_state=TrustState.LEGACY)

    def entry(self, item: _Item) -> DecisionInboxEntry:
        return DecisionInboxEntry(**self._stamped(item))

    def session(self, item: _Item) -> SessionContext:
        """A session of the past: it ended when the file was last written, at the latest now."""
        ended = min(item.record.created or self.opened.now, self.opened.now)
        return SessionContext(**self._common(item), started_at=ended, ended_at=ended)


_MAKERS: dict[str, Callable[[_Writer, _Item], Any]] = {
    "decision": _Writer.decision,
    "memory": _Writer.memory,
    "entry": _Writer.entry,
    "session": _Writer.session,
}
