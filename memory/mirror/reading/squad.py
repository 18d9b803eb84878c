"""A whole tree to records and a report (SPEC 8): `read_tree(read_folder(path))`."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from memory.mirror.marks import unwrap
from memory.mirror.names import Names
from memory.mirror.reading.collecting import Collector
from memory.mirror.reading.decoding import conflict_notes, decode, without_inner_boms
from memory.mirror.reading.focus import read_focus
from memory.mirror.reading.histories import read_charter, read_history, spelled
from memory.mirror.reading.inbox import read_document, read_inbox
from memory.mirror.reading.ledgers import read_ledger
from memory.mirror.reading.ours import take_found
from memory.mirror.reading.records import Record
from memory.mirror.reading.report import FileCount, Skipped, TreeReading, Unread, not_selected
from memory.mirror.reading.sources import DEFAULT_SOURCES, SOURCES, Place, place_of_file
from memory.mirror.reading.tree import SourceFile, SourceTree, Unreadable, UnsafeTree
from memory.values import agent_key

MAX_LINES = 100_000
"""Lines of one file; the parser's memory grows with them. A longer file is listed as `too_many_lines`."""
MAX_TOTAL_LINES = 500_000
"""Lines of all files that are read: over them the tree is refused."""

_READERS: dict[str, Callable[[str, Collector], None]] = {
    "ledger": read_ledger,
    "document": read_document,
    "inbox": read_inbox,
    "charter": read_charter,
    "history": read_history,
    "focus": read_focus,
}


def read_tree(tree: SourceTree, sources: Collection[str] = DEFAULT_SOURCES) -> TreeReading:
    """Everything the tree holds. Records of a source that is not in `sources` are counted and skipped.

    Raises ValueError for a source that does not exist, and `UnsafeTree` when the tree turns out to be over the bounds.
    """
    if unknown := set(sources) - set(SOURCES):
        raise ValueError(f"no such source: {', '.join(sorted(unknown))}")
    unread = [Unread(file.path, "other_root") for file in tree.beside]
    places = _places(tree, unread)
    names = _names(places)
    files = list(_collected(places, names, unread))
    _settle(files, frozenset(sources))
    skipped = [item for file in files for item in file.skipped]
    return TreeReading(
        root=tree.root,
        records=tuple(record for file in files for record in file.records),
        skipped=tuple(skipped),
        unread=tuple(sorted(unread, key=lambda item: item.path)),
        notes=tuple(note for file in files for note in file.notes),
        files=tuple(_counted(file) for file in files),
        not_selected=not_selected(skipped),
    )


def _places(tree: SourceTree, unread: list[Unread]) -> list[tuple[SourceFile, Place]]:
    """The files to read, in the order of their sources, then of their paths; the ledger before the boundaries, which repeat it."""
    found: list[tuple[SourceFile, Place]] = []
    for file in tree.files:
        place = place_of_file(file.path, tree.root)
        if file.problem:
            reason, _, detail = file.problem.partition(": ")
            unread.append(Unread(file.path, reason, detail))
        elif isinstance(place, Unread):
            unread.append(place)
        else:
            found.append((file, place))
    return sorted(
        found, key=lambda item: (SOURCES.index(item[1].source), item[1].reader == "ours", item[0].path)
    )


def _names(places: Iterable[tuple[SourceFile, Place]]) -> Names:
    """The agents of the tree, spelled as their charters do; a folder without a charter speaks for itself."""
    spellings: dict[str, str] = {}
    for file, place in places:
        if place.agent:
            spellings.setdefault(agent_key(place.agent), place.agent)
        if place.reader == "charter":
            spellings[agent_key(place.agent)] = _spelled_by(file, place.agent)
    return Names(spellings.values())


def _spelled_by(file: SourceFile, folder: str) -> str:
    try:
        return spelled(folder, decode(file.read()[:4096]).text)
    except Unreadable:
        # It is reported where the charter itself is read.
        return folder


def _collected(
    places: Iterable[tuple[SourceFile, Place]], names: Names, unread: list[Unread]
) -> Iterable[Collector]:
    lines = 0
    for file, place in places:
        try:
            data = file.read()
        except Unreadable as problem:
            unread.append(Unread(file.path, problem.reason, problem.detail))
            continue
        count = data.count(b"\n") + data.count(b"\r")
        lines += count
        if lines > MAX_TOTAL_LINES:
            raise UnsafeTree("lines", f"More than {MAX_TOTAL_LINES} lines in all.")
        if count > MAX_LINES:
            unread.append(Unread(file.path, "too_many_lines", f"{count}, at most {MAX_LINES}"))
            continue
        yield read_file(file.path, data, place, names)


def read_file(path: str, data: bytes, place: Place, names: Names) -> Collector:
    """One file. Records of our own export first; what is left of the file goes to the reader of its kind. Never raises."""
    into = Collector(path, path.partition("/")[2], place, names)
    decoded = decode(data)
    into.note_all(decoded.notes)
    unwrapped = unwrap(decoded.text)
    for found in unwrapped.found:
        take_found(found, into)
    for index in unwrapped.broken:
        into.note(index + 1, "broken_mark", "read as text")
    rest = without_inner_boms(unwrapped.rest)
    into.note_all(rest.notes)
    into.note_all(conflict_notes(rest.text))
    _read_rest(rest.text, bool(unwrapped.found), into)
    if decoded.added:
        into.renumber(decoded.file_line)
    return into


def _read_rest(text: str, has_found: bool, into: Collector) -> None:
    reader = into.place.reader
    # In our own file for one record, what stands around its marks is there for people.
    alone = has_found and reader in ("inbox", "focus")
    if reader == "ours" or alone:
        _skip_lines(text, into)
    elif text.strip() or not has_found:
        _READERS[reader](text, into)


def _skip_lines(text: str, into: Collector) -> None:
    first = next((index for index, line in enumerate(text.split("\n")) if line.strip()), None)
    if first is not None:
        into.skip("text", first + 1, text.split("\n")[first], "not_a_record")


def _settle(files: list[Collector], sources: frozenset[str]) -> None:
    """Leaves out what was not chosen, then repeats; flags what differs from an earlier record in letter case only."""
    first: dict[str, list[Record]] = {}
    like: dict[tuple[str, str], Record] = {}
    for file in files:
        records, file.records = file.records, []
        chosen = file.place.source in sources
        for record in records:
            alike = first.setdefault(record.digest, [])
            if not chosen:
                _skip(file, record, "source_not_selected")
            elif same := next((other for other in alike if not _two_rows(other, record)), None):
                _skip(file, record, "duplicate", same.at)
            else:
                alike.append(record)
                near = like.setdefault((record.kind, _likeness(record)), record)
                file.records.append(record if near is record else replace(record, near=near.at))
        if not chosen:
            file.skipped = [replace(item, reason="source_not_selected") for item in file.skipped]


def _two_rows(one: Record, other: Record) -> bool:
    """Our own export says that two equal texts are two rows: both come back."""
    if one.origin is None or other.origin is None or None in (one.origin.id, other.origin.id):
        return False
    return (one.origin.project, one.origin.id) != (other.origin.project, other.origin.id)


def _skip(file: Collector, record: Record, reason: str, detail: str = "") -> None:
    # It was counted when it was found.
    file.found -= 1
    file.skip(record.kind, record.line, record.title or record.content, reason, detail)


def _likeness(record: Record) -> str:
    """What makes two records look alike: the title without letter case; for a memory, which has none, agent and text."""
    if record.kind in ("decision", "entry"):
        return record.title.casefold()
    return f"{agent_key(record.agent)}\n{' '.join(record.content.casefold().split())}"


def _counted(file: Collector) -> FileCount:
    return FileCount(file.path, file.place.source, file.found, len(file.records), len(file.skipped))


__all__ = ["Skipped", "read_file", "read_tree"]
