"""Uploaded zips between the dry run that shows them and the import that takes them in (SPEC 8; docs/files.md).

A browser cannot choose a file again by itself, so the server keeps the zip for an hour under its SHA-256: one for each person and
project, a few for everybody, in a folder that nobody else on the machine can read. On an installation of several hosts a zip may lie
on another one: then it has to be chosen again, and nothing is lost.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self
from uuid import UUID

from django.conf import settings
from django.core.files.base import File

logger = logging.getLogger(__name__)

KEPT_SECONDS = 3600
MAX_KEPT = 20
"""Zips that are kept at once; the oldest goes first. With MAX_UPLOAD_BYTES it bounds the disk."""
TOLD_EVERY = 0.2
"""Seconds between two notes of how far an import is."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


def keep(project_id: UUID, username: str, file: File[bytes]) -> str:
    """Keep an upload in place of this person's earlier one; its SHA-256. Raises OSError when there is no safe place for it."""
    folder = _folder()
    forget(project_id, username)
    _sweep(folder, MAX_KEPT - 1)
    digest = hashlib.sha256()
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".part", delete=False) as made:
        for chunk in file.chunks():
            digest.update(chunk)
            made.write(chunk)
    sha256 = digest.hexdigest()
    Path(made.name).replace(folder / f"{_key(project_id, username)}-{sha256}.zip")
    return sha256


@contextmanager
def kept(project_id: UUID, username: str, sha256: str) -> Iterator[IO[bytes] | None]:
    """This person's upload with that SHA-256, or None when it is no longer there."""
    stream = _opened(project_id, username, sha256)
    if stream is None:
        yield None
        return
    with stream:
        yield stream


def _opened(project_id: UUID, username: str, sha256: str) -> IO[bytes] | None:
    if not _SHA256.fullmatch(sha256):
        return None
    try:
        folder = _folder()
        _sweep(folder, MAX_KEPT)
        return (folder / f"{_key(project_id, username)}-{sha256}.zip").open("rb")
    except OSError:
        # Swept, taken already, or kept on another host: the reader is asked to choose the file again.
        return None


def forget(project_id: UUID, username: str) -> None:
    """Remove what is kept for this person in this project; what cannot be removed now goes within the hour."""
    try:
        for path in _folder().glob(f"{_key(project_id, username)}-*.zip"):
            path.unlink(missing_ok=True)
    except OSError:
        logger.warning("A kept upload could not be removed", exc_info=True)


def _folder() -> Path:
    """The folder, made when it is missing. The system's temporary folder is open to everybody, so a folder there may be a trap."""
    folder = Path(settings.UPLOADS_ROOT or Path(tempfile.gettempdir(), f"agentweaver-uploads-{os.geteuid()}"))
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} must be a folder of this user alone (mode 700).")
    return folder


def _key(project_id: UUID, username: str) -> str:
    """A file name for a person in a project: no name of anybody is ever a path."""
    return hashlib.sha256(f"{project_id}:{username}".encode()).hexdigest()[:32]


def _sweep(folder: Path, room: int) -> None:
    """Remove what is too old, and the oldest of too many."""
    found = sorted(((path, _modified(path)) for path in folder.iterdir()), key=lambda item: -item[1])
    zips = [path for path, _ in found if path.suffix == ".zip"]
    limit = time.time() - KEPT_SECONDS
    for path in {path for path, modified in found if modified < limit} | set(zips[room:]):
        path.unlink(missing_ok=True)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


class Progress:
    """How far this person's import is, written where any worker can read it. Called with stage, done and total; gone at the end."""

    def __init__(self, project_id: UUID, username: str) -> None:
        self._project_id, self._username = project_id, username
        self._path: Path | None = None
        self._told = 0.0

    def __enter__(self) -> Self:
        with suppress(OSError):
            self._path = _progress_path(self._project_id, self._username)
            # What a killed worker left behind would be told as the beginning of this one.
            self._path.unlink(missing_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if self._path is None or (now - self._told < TOLD_EVERY and done < total):
            return
        self._told = now
        beside = self._path.with_suffix(".new")
        # A bar that stands still is no reason to give an import up.
        with suppress(OSError):
            beside.write_text(json.dumps({"stage": stage, "done": done, "total": total}), encoding="ascii")
            beside.replace(self._path)


def progress_of(project_id: UUID, username: str) -> dict[str, Any] | None:
    """`stage` (`reading` or `writing`), `done` and `total` of this person's import; None when none is under way here."""
    try:
        told: dict[str, Any] = json.loads(_progress_path(project_id, username).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return told


def _progress_path(project_id: UUID, username: str) -> Path:
    return _folder() / f"{_key(project_id, username)}.progress"
