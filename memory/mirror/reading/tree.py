"""Where the bytes of a tree come from: a folder or a zip, bounded and never followed out of its place (SPEC 8).

Both give the same `SourceTree`: names first, bytes only when asked for, so that what is not memory is never opened and memory
stays flat. A symlink is listed with its problem and never followed. A name or a size that is not safe refuses the whole tree;
one file that is too large or cannot be read is only listed, and the rest still comes in.
"""

import os
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from memory.errors import DomainError

ROOTS = (".squad", ".ai-team")
"""The folder names teams use, the first that is there is read."""
CONTEXT_ROOT = ".agentweaver"
"""Beside the root: holds the part of our own export that has no place inside it."""

MAX_ENTRIES = 5_000
MAX_TOTAL_BYTES = 64 * 1024 * 1024
MAX_FILE_BYTES = 4 * 1024 * 1024
"""One file. A larger one is listed as `too_large`; the largest ledger seen in public is 1.5 MB."""
MAX_DEPTH = 12
"""Folders between the root of the tree and a file."""
MAX_NAME = 255
"""Characters of one part of a path."""
MAX_PATH = 600
MAX_ZIP_RATIO = 200
"""Bytes out for one byte in. Looked at for entries over `RATIO_FLOOR` only: short runs compress better than that."""
RATIO_FLOOR = 1024 * 1024
CHUNK = 64 * 1024

_DRIVE = re.compile(r"^[A-Za-z]:")
_UNREADABLE = (
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
"""What the standard library raises for a zip that is damaged on purpose."""
_END = b"PK\x05\x06"
_END_SIZE = 22


def _mega(size: int) -> str:
    """A size for people, rounded up: `60 MB`."""
    return f"{-(-size // (1024 * 1024))} MB"


class UnsafeTree(DomainError):
    """The tree is refused as a whole. `limit` names what was exceeded or broken, `name` the entry if there is one."""

    code = "unsafe_tree"

    def __init__(self, limit: str, detail: str, name: str = "") -> None:
        super().__init__(f"{detail} ({name!r})" if name else detail)
        self.limit = limit
        self.name = name


class NotASquadTree(DomainError):
    """Neither `.squad` nor `.ai-team` is there, nor does the folder look like one of them."""

    code = "not_a_squad_tree"


class Unreadable(Exception):
    """One file could not be read. `reason` is `too_large` or `unreadable`."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True)
class SourceFile:
    """One entry. `path` is relative to the folder that holds the root: `.squad/decisions.md`. `problem` says why it has no bytes."""

    path: str
    size: int
    problem: str = ""
    opener: Callable[[], bytes] | None = None

    def read(self) -> bytes:
        """The bytes, at most `MAX_FILE_BYTES`. Raises `Unreadable`, and `UnsafeTree` when a zip entry lies about its size."""
        if self.problem or self.opener is None:
            raise Unreadable(self.problem or "unreadable")
        if self.size > MAX_FILE_BYTES:
            raise Unreadable("too_large", f"{_mega(self.size)}, at most {_mega(MAX_FILE_BYTES)}")
        return self.opener()


@dataclass(frozen=True)
class SourceTree:
    """The files of the chosen root, in the order of their paths, and those of a second root that was not chosen."""

    root: str
    files: tuple[SourceFile, ...]
    beside: tuple[SourceFile, ...] = ()


# --- a folder -----------------------------------------------------------------------------------------------------


def read_folder(path: str | Path) -> SourceTree:
    """The tree at `path`: a folder that holds `.squad` or `.ai-team`, or one of these themselves.

    Raises `NotASquadTree` and `UnsafeTree`. Symlinks below `path` are never followed.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise NotASquadTree(f"{folder} is not a folder.")
    if folder.name in ROOTS:
        return _tree(folder.name, _walk(folder, folder.name), ())
    present = [name for name in ROOTS if (folder / name).is_dir() or (folder / name).is_symlink()]
    context = folder / CONTEXT_ROOT
    has_context = context.is_dir() and not context.is_symlink()
    if not present and not (has_context and (context / "context").is_dir()):
        return _bare_folder(folder)
    _refuse_linked(folder, present)
    files = _walk(folder / present[0], present[0]) if present else []
    if has_context:
        files += _walk(context, CONTEXT_ROOT)
    beside = [entry for name in present[1:] for entry in _walk(folder / name, name)]
    return _tree(present[0] if present else ROOTS[0], files, beside)


def _bare_folder(folder: Path) -> SourceTree:
    if not _looks_like_root(child.name for child in folder.iterdir()):
        raise NotASquadTree(f"No .squad or .ai-team folder in {folder}.")
    return _tree(ROOTS[0], _walk(folder, ROOTS[0]), ())


def _refuse_linked(folder: Path, names: list[str]) -> None:
    for name in names:
        if (folder / name).is_symlink():
            raise UnsafeTree("symlink", "The root folder is a symlink.", name)


def _walk(folder: Path, prefix: str) -> list[SourceFile]:
    found: list[SourceFile] = []
    # What a person names may be a symlink; nothing below it may.
    root = folder.resolve()
    for entry in _entries(root, (), prefix):
        found.append(entry)
        if len(found) > MAX_ENTRIES:
            raise UnsafeTree("entries", f"More than {MAX_ENTRIES} files.")
    return found


def _entries(root: Path, parts: tuple[str, ...], prefix: str) -> Iterator[SourceFile]:
    if len(parts) > MAX_DEPTH:
        raise UnsafeTree("depth", f"Folders are nested more than {MAX_DEPTH} deep.", prefix)
    try:
        children = _listed(root, parts)
    except OSError as error:
        yield SourceFile(_shown(prefix), 0, f"unreadable: {error.strerror}")
        return
    for name, status in children:
        path, below = f"{prefix}/{name}", (*parts, name)
        if stat.S_ISLNK(status.st_mode):
            yield SourceFile(_shown(path), 0, "symlink")
        elif stat.S_ISDIR(status.st_mode):
            yield from _entries(root, below, path)
        elif not stat.S_ISREG(status.st_mode):
            yield SourceFile(_shown(path), 0, "not_a_file")
        else:
            yield SourceFile(_shown(path), status.st_size, "", partial(_bytes_of, root, below))


def _listed(root: Path, parts: tuple[str, ...]) -> list[tuple[str, os.stat_result]]:
    folder = _open_below(root, parts, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with os.scandir(folder) as children:
            return sorted((child.name, child.stat(follow_symlinks=False)) for child in children)
    finally:
        os.close(folder)


def _shown(path: str) -> str:
    """A name that is not valid UTF-8 on disk, made fit for a report."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _open_below(root: Path, parts: tuple[str, ...], flags: int) -> int:
    """Opens a name below `root` step by step, so that no part of the way is a symlink, not even one put there meanwhile."""
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for index, part in enumerate(parts, start=1):
        # A file may turn into a pipe after it was listed: it is not waited for.
        wanted = flags | os.O_NONBLOCK if index == len(parts) else os.O_RDONLY | os.O_DIRECTORY
        try:
            below = os.open(part, wanted | os.O_NOFOLLOW, dir_fd=at)
        finally:
            os.close(at)
        at = below
    return at


def _bytes_of(root: Path, parts: tuple[str, ...]) -> bytes:
    try:
        with os.fdopen(_open_below(root, parts, os.O_RDONLY), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise Unreadable("not_a_file")
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise Unreadable("unreadable", error.strerror or type(error).__name__) from error
    if len(data) > MAX_FILE_BYTES:
        raise Unreadable("too_large", f"more than {_mega(MAX_FILE_BYTES)}")
    return data


# --- a zip --------------------------------------------------------------------------------------------------------


def read_zip(file: str | Path | IO[bytes]) -> SourceTree:
    """The tree in a zip, the root at its top or inside one wrapping folder. Nothing is unpacked to disk.

    Keep `file` open while the tree is read. Raises `NotASquadTree`, and `UnsafeTree` for absolute names, `..`, drive letters,
    backslashes, NULs, names that repeat or differ only in case, encrypted entries and anything over the bounds.
    """
    archive = _archive(file)
    infos = archive.infolist()
    if len(infos) > MAX_ENTRIES:
        raise UnsafeTree("entries", f"More than {MAX_ENTRIES} entries.")
    _check_names(infos)
    _check_sizes(infos)
    budget = _Budget()
    files = [_zip_file(archive, info, budget) for info in infos if not info.is_dir()]
    return _rooted(files)


def _archive(file: str | Path | IO[bytes]) -> zipfile.ZipFile:
    try:
        if isinstance(file, str | Path):
            with Path(file).open("rb") as stream:
                _check_directory(stream)
        else:
            _check_directory(file)
        return zipfile.ZipFile(file)
    except _UNREADABLE as error:
        raise UnsafeTree("zip", f"This is not a readable zip file: {error}") from error


def _check_directory(stream: IO[bytes]) -> None:
    """The list of entries is read as a whole before any can be counted, so its size is looked at first."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _END_SIZE - 65_535))
    tail = stream.read()
    at = len(tail) - _END_SIZE
    if tail[at : at + 4] != _END or tail[-2:] != b"\0\0":
        at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_SIZE:
        raise zipfile.BadZipFile("no end of directory")
    if int.from_bytes(tail[at + 12 : at + 16], "little") > MAX_ENTRIES * (MAX_PATH + 200):
        raise UnsafeTree("entries", f"A directory for more than {MAX_ENTRIES} entries.")
    stream.seek(0)


def _check_names(infos: list[zipfile.ZipInfo]) -> None:
    seen: dict[str, str] = {}
    for info in infos:
        name = info.orig_filename
        _check_name(name)
        if info.flag_bits & 0x1:
            raise UnsafeTree("encrypted", "Encrypted entries cannot be read.", name)
        key = unicodedata.normalize("NFC", name.rstrip("/")).casefold()
        if key in seen:
            what = "The same name twice." if seen[key] == name else "Two names differ only in case."
            raise UnsafeTree("duplicate_name", what, name)
        seen[key] = name


def _check_name(name: str) -> None:
    for broken, limit, detail in (
        ("\x00" in name, "name", "A name with a NUL."),
        ("\\" in name, "name", "A name with a backslash."),
        (name.startswith("/"), "name", "An absolute name."),
        (bool(_DRIVE.match(name)), "name", "A name with a drive letter."),
        (len(name) > MAX_PATH, "name_length", f"A path of more than {MAX_PATH} characters."),
    ):
        if broken:
            raise UnsafeTree(limit, detail, name[:120])
    _check_parts(name, name.removesuffix("/").split("/"))


def _check_parts(name: str, parts: list[str]) -> None:
    if any(part in ("", ".", "..") for part in parts):
        raise UnsafeTree("name", "A name that leaves its folder.", name[:120])
    if any(len(part) > MAX_NAME for part in parts):
        raise UnsafeTree("name_length", f"A name of more than {MAX_NAME} characters.", name[:120])
    # One more than in a folder: a zip may wrap the root in a folder of its own.
    if len(parts) > MAX_DEPTH + 2:
        raise UnsafeTree("depth", f"Folders are nested more than {MAX_DEPTH} deep.", name[:120])


def _check_sizes(infos: list[zipfile.ZipInfo]) -> None:
    if sum(info.file_size for info in infos) > MAX_TOTAL_BYTES:
        raise UnsafeTree("total_size", f"More than {_mega(MAX_TOTAL_BYTES)} in all.")
    for info in infos:
        if info.file_size > RATIO_FLOOR and info.file_size > MAX_ZIP_RATIO * max(info.compress_size, 1):
            raise UnsafeTree("zip_ratio", f"Compressed more than {MAX_ZIP_RATIO} times.", info.filename)


class _Budget:
    """Bytes that really came out of the zip, whatever its directory claims."""

    def __init__(self) -> None:
        self.left = MAX_TOTAL_BYTES

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise UnsafeTree("total_size", f"More than {_mega(MAX_TOTAL_BYTES)} in all.")


def _zip_file(archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: _Budget) -> SourceFile:
    # Names are bytes in old zips; zipfile reads them as cp437, which is always text.
    path = info.filename
    mode = info.external_attr >> 16
    if stat.S_ISLNK(mode):
        return SourceFile(path, 0, "symlink")
    if mode and stat.S_IFMT(mode) and not stat.S_ISREG(mode):
        return SourceFile(path, 0, "not_a_file")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # Other methods may ask for memory no bound here counts.
        return SourceFile(path, 0, "unreadable: compression method")
    return SourceFile(path, info.file_size, "", partial(_inflate, archive, info, budget))


def _inflate(archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: _Budget) -> bytes:
    chunks: list[bytes] = []
    size = 0
    try:
        with archive.open(info) as stream:
            while chunk := stream.read(CHUNK):
                size += len(chunk)
                budget.spend(len(chunk))
                if size > info.file_size or size > MAX_FILE_BYTES:
                    raise UnsafeTree("file_size", "An entry is larger than the zip says.", info.filename)
                chunks.append(chunk)
    except _UNREADABLE as error:
        raise Unreadable("unreadable", str(error)[:200]) from error
    return b"".join(chunks)


def _rooted(files: list[SourceFile]) -> SourceTree:
    """Finds the root among the names: at the top, inside one wrapping folder, or the content of a root itself."""
    tops = {file.path.split("/", 1)[0] for file in files}
    if not tops & {*ROOTS, CONTEXT_ROOT} and len(tops) == 1:
        files = _unwrapped(files, tops.pop())
        tops = {file.path.split("/", 1)[0] for file in files}
    present = [name for name in ROOTS if name in tops]
    if not present and CONTEXT_ROOT not in tops:
        if not _looks_like_root(tops):
            raise NotASquadTree("No .squad or .ai-team folder in the zip.")
        return _tree(ROOTS[0], [_renamed(file, f"{ROOTS[0]}/{file.path}") for file in files], ())
    # An export of ours may hold nothing but its part beside the root.
    root = present[0] if present else ROOTS[0]
    chosen = [file for file in files if file.path.split("/", 1)[0] in (root, CONTEXT_ROOT)]
    beside = [file for file in files if file.path.split("/", 1)[0] in present[1:]]
    return _tree(root, chosen, beside)


def _unwrapped(files: list[SourceFile], top: str) -> list[SourceFile]:
    return [_renamed(file, file.path.removeprefix(top + "/")) for file in files]


def _renamed(file: SourceFile, path: str) -> SourceFile:
    return SourceFile(path, file.size, file.problem, file.opener)


# --- both ---------------------------------------------------------------------------------------------------------


def _looks_like_root(names: Iterable[str]) -> bool:
    return bool({"decisions.md", "decisions", "agents"} & set(names))


def _tree(root: str, files: Iterable[SourceFile], beside: Iterable[SourceFile]) -> SourceTree:
    every = sorted(files, key=lambda file: file.path)
    second = sorted(beside, key=lambda file: file.path)
    if len(every) + len(second) > MAX_ENTRIES:
        raise UnsafeTree("entries", f"More than {MAX_ENTRIES} files.")
    if sum(file.size for file in every) > MAX_TOTAL_BYTES:
        raise UnsafeTree("total_size", f"More than {_mega(MAX_TOTAL_BYTES)} in all.")
    return SourceTree(root, tuple(every), tuple(second))
