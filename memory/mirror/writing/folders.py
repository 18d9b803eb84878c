"""A folder on the disk that nothing leads out of (SPEC 8): no symlink is ever followed, at any step, whoever made it when."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1024 * 1024


def steps_of(path: str) -> list[str]:
    """The steps of a path inside a folder. Raises OSError for one that could leave it."""
    steps = path.split("/")
    if any(step in ("", ".", "..") or "\x00" in step for step in steps):
        raise OSError(f"{path!r} leaves the folder")
    return steps


class Folder:
    """An open folder. Every path is relative to it and walked step by step: a symlink at any step is an OSError, whoever made it when."""

    def __init__(self, path: Path | str, *, at: int | None = None) -> None:
        self._fd = os.open(path, _DIRECTORY, dir_fd=at)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._fd)

    def inside(self, steps: list[str], *, make: bool = True) -> Folder:
        """The folder below, made on the way when it is missing; close it after use."""
        current = Folder(".", at=self._fd)
        for step in steps:
            with current:
                if make:
                    _make(step, current._fd)
                current = Folder(step, at=current._fd)
        return current

    @contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        *steps, name = steps_of(path)
        with self.inside(steps, make=make) as parent:
            yield parent._fd, name

    def opened(self, path: str) -> int | None:
        """A descriptor of a regular file, None when there is none. Raises OSError for a symlink or anything else."""
        try:
            with self._parent(path) as (parent, name):
                found = os.open(name, _FILE, dir_fd=parent)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise OSError(f"{path} is not a file")
        return found

    def read(self, path: str, limit: int) -> bytes | None:
        """At most `limit` bytes of a file, None when there is none."""
        found = self.opened(path)
        if found is None:
            return None
        with os.fdopen(found, "rb") as stream:
            return stream.read(limit)

    def digest(self, path: str) -> str | None:
        """SHA-256 of a file, None when there is none."""
        found = self.opened(path)
        if found is None:
            return None
        sha = hashlib.sha256()
        with os.fdopen(found, "rb") as stream:
            while chunk := stream.read(_CHUNK):
                sha.update(chunk)
        return sha.hexdigest()

    def write_new(self, path: str, data: bytes) -> None:
        """A new file, on the disk when this returns. Raises FileExistsError."""
        with self._parent(path, make=True) as (parent, name):
            made = os.open(name, _NEW, 0o644, dir_fd=parent)
        with os.fdopen(made, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())

    def move(self, source: str, target: str) -> None:
        """Puts a file in another's place in one step."""
        with self._parent(source) as (old, name), self._parent(target, make=True) as (new, wanted):
            os.rename(name, wanted, src_dir_fd=old, dst_dir_fd=new)

    def link(self, source: str, target: str) -> None:
        """A second name for a file, or a copy where the file system knows no such thing."""
        with self._parent(source) as (old, name), self._parent(target, make=True) as (new, wanted):
            try:
                os.link(name, wanted, src_dir_fd=old, dst_dir_fd=new, follow_symlinks=False)
            except FileExistsError:
                raise
            except OSError:
                data = self.read(source, 1 << 40)
                if data is None:
                    raise
                self.write_new(target, data)

    def remove(self, path: str) -> None:
        """Removes a file, and the folders above it that it leaves empty."""
        with self._parent(path) as (parent, name):
            os.unlink(name, dir_fd=parent)
        self._prune(steps_of(path)[:-1])

    def _prune(self, steps: list[str]) -> None:
        while steps:
            *above, name = steps
            try:
                with self.inside(above, make=False) as parent:
                    os.rmdir(name, dir_fd=parent._fd)
            except OSError:
                return
            steps = above

    def sync(self, paths: Iterable[str]) -> None:
        """Lets the renames in the folders of `paths` reach the disk; a folder that is gone needs none."""
        for steps in sorted({tuple(steps_of(path)[:-1]) for path in paths}):
            try:
                with self.inside(list(steps), make=False) as parent:
                    os.fsync(parent._fd)
            except FileNotFoundError:
                continue

    def names(self, path: str) -> list[tuple[str, bool]]:
        """What a folder holds, sorted: each name and whether it is a folder. Nothing when it is missing or a symlink."""
        try:
            with self.inside(steps_of(path), make=False) as found, os.scandir(found._fd) as entries:
                return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def remove_tree(self, path: str) -> None:
        """Removes a folder of our own with all it holds; nothing when it is missing."""
        for name, is_folder in self.names(path):
            if is_folder:
                self.remove_tree(f"{path}/{name}")
            else:
                with self._parent(f"{path}/{name}") as (parent, base):
                    os.unlink(base, dir_fd=parent)
        *above, name = steps_of(path)
        try:
            with self.inside(above, make=False) as parent:
                os.rmdir(name, dir_fd=parent._fd)
        except FileNotFoundError:
            return

    @contextmanager
    def locked(self, seconds: float) -> Iterator[None]:
        """Alone in this folder among all exports, until the block ends or the process does. Raises TimeoutError after `seconds`."""
        until = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise TimeoutError("another export of this folder is running") from None
                time.sleep(0.05)
        try:
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)


def _make(name: str, parent: int) -> None:
    try:
        os.mkdir(name, 0o755, dir_fd=parent)
    except FileExistsError:
        return
