"""What one file gives: records that fit the ledger's limits, and everything else with its reason (SPEC 7, 8)."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from memory.mirror.names import Names
from memory.mirror.reading.decoding import TextNote
from memory.mirror.reading.records import Record, place_of
from memory.mirror.reading.report import Note, Skipped
from memory.mirror.reading.sources import Place
from memory.mirror.wording import one_line
from memory.values import MAX_TAGS, MAX_TEXT, clean_tag

WORDS = 120
"""Characters of a heading or first words in the report."""


@dataclass
class Collector:
    """Gathers the pieces of one file. `inside` is the path within the root, which places are made of."""

    path: str
    inside: str
    place: Place
    names: Names
    found: int = 0
    records: list[Record] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    _seen: Counter[tuple[str, str]] = field(default_factory=Counter)

    def take(self, record: Record) -> None:
        """Takes a record, unless its text is blank or longer than a row can hold: then it is skipped, never cut."""
        words = record.title or record.content
        if len(record.content) > MAX_TEXT:
            detail = f"{len(record.content)} characters, at most {MAX_TEXT}"
            self.skip(record.kind, record.line, words, "too_long", detail)
        elif not record.content.strip() and record.kind != "session":
            self.skip(record.kind, record.line, words, "empty")
        else:
            self.found += 1
            self.records.append(record)

    def skip(self, kind: str, line: int, words: str, reason: str, detail: str = "") -> None:
        self.found += 1
        # Long text is cut before it is tidied: only its first words are shown.
        shown = one_line(words[: WORDS * 2])[:WORDS]
        self.skipped.append(Skipped(self.path, line, self.place.source, kind, shown, reason, detail))

    def note(self, line: int, code: str, detail: str = "") -> None:
        self.notes.append(Note(self.path, line, code, detail))

    def note_all(self, notes: Iterable[TextNote]) -> None:
        for item in notes:
            self.note(item.line, item.code, item.detail)

    def renumber(self, file_line: Callable[[int], int]) -> None:
        """Turns the lines of the decoded text into those of the file."""
        self.records = [replace(record, line=file_line(record.line)) for record in self.records]
        self.skipped = [replace(item, line=file_line(item.line)) for item in self.skipped]
        self.notes = [replace(note, line=file_line(note.line)) for note in self.notes]

    def place_for(self, kind: str, heading: str) -> str:
        """The place of a record; the second of the same heading in one file has a place of its own."""
        key = one_line(heading).casefold()
        self._seen[kind, key] += 1
        repeat = self._seen[kind, key]
        return place_of(kind, self.inside, key if repeat == 1 else f"{key}\n{repeat}")

    def tags(self, line: int, given: Sequence[str] | str) -> tuple[str, ...]:
        """Tags that fit; what does not is dropped with a note, and the row is kept (B54)."""
        parts = given.split(",") if isinstance(given, str) else given
        kept: dict[str, None] = {}
        dropped = 0
        for part in parts:
            try:
                tag = clean_tag(part)
            except ValueError:
                dropped += 1
                continue
            if tag and len(kept) < MAX_TAGS:
                kept[tag] = None
            elif tag and tag not in kept:
                dropped += 1
        if dropped:
            self.note(line, "tags_dropped", f"{dropped} of {len(parts)}")
        return tuple(kept)
