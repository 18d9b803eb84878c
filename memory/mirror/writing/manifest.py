"""`.agentweaver/context/manifest.json` (SPEC 8): every file of the mirror with its SHA-256 and row ids, and when it was written.

Whoever compares the listed files with their digests finds them right at every moment, also after a kill in the middle of an export:
while files are being replaced the manifest lists those that stay as they are, and names the others under `changing` with the
digest before and after. Such a manifest says `complete: false`; the next export finishes what was left.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memory.errors import ExportFailed
from memory.mirror.writing.folders import Folder
from memory.mirror.writing.paths import checked_path
from memory.mirror.writing.rendering import MANIFEST, MIRROR_PATH, MirrorFile
from memory.models import Project

SCHEMA = "agentweaver.mirror.v1"
MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as the manifest lists it."""

    path: str
    sha256: str
    bytes: int
    rows: Mapping[str, list[int]]


@dataclass(frozen=True, slots=True)
class Changing:
    """A file that is being replaced, made (`old` is None) or removed (`new` is None)."""

    path: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder's mirror is: of which project, at which epoch, written when."""

    project: str
    slug: str
    epoch: int
    exported_at: str
    files: tuple[Listed, ...]
    changing: tuple[Changing, ...] = ()

    @property
    def complete(self) -> bool:
        return not self.changing

    def owned(self) -> dict[str, set[str]]:
        """The digests our files may have, by path: any other content was put there by somebody else."""
        digests: dict[str, set[str]] = defaultdict(set)
        for file in self.files:
            digests[file.path].add(file.sha256)
        for change in self.changing:
            digests[change.path] |= {digest for digest in (change.old, change.new) if digest}
        return dict(digests)

    def as_bytes(self) -> bytes:
        values: dict[str, Any] = {
            "schema": SCHEMA,
            "project": self.project,
            "slug": self.slug,
            "epoch": self.epoch,
            "exported_at": self.exported_at,
            "complete": self.complete,
            "files": [
                {"path": f.path, "sha256": f.sha256, "bytes": f.bytes, "rows": dict(f.rows)}
                for f in self.files
            ],
        }
        if self.changing:
            values["changing"] = [{"path": c.path, "old": c.old, "new": c.new} for c in self.changing]
        return (json.dumps(values, indent=1) + "\n").encode()


def manifest_of(project: Project, files: Sequence[MirrorFile], now: datetime) -> Manifest:
    """The manifest of a whole mirror."""
    listed = tuple(Listed(file.path, file.sha256, len(file.data), file.rows) for file in files)
    return Manifest(
        str(project.pk),
        project.slug,
        project.epoch,
        now.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        listed,
    )


def read_manifest(folder: Folder) -> Manifest | None:
    """The folder's manifest; None when there is none or it is damaged: then no file there is taken for ours."""
    data = folder.read(MANIFEST, MAX_BYTES)
    if data is None:
        return None
    try:
        return _parsed(json.loads(data))
    except (ValueError, KeyError, TypeError, RecursionError, ExportFailed):
        return None


def _parsed(values: Any) -> Manifest:
    if values["schema"] != SCHEMA:
        raise ValueError("another schema")
    files = tuple(
        Listed(_path(file["path"]), str(file["sha256"]), int(file["bytes"]), dict(file["rows"]))
        for file in values["files"]
    )
    changing = tuple(
        Changing(_path(change["path"]), _digest(change["old"]), _digest(change["new"]))
        for change in values.get("changing", ())
    )
    return Manifest(
        str(values["project"]),
        str(values["slug"]),
        int(values["epoch"]),
        str(values["exported_at"]),
        files,
        changing,
    )


def _path(path: Any) -> str:
    """A path the mirror could have written: no manifest may name another file as ours."""
    checked_path(str(path))
    if not MIRROR_PATH.fullmatch(str(path)):
        raise ValueError("not a path of the mirror")
    return str(path)


def _digest(digest: Any) -> str | None:
    return None if digest is None else str(digest)


@dataclass(frozen=True, slots=True)
class MirrorCheck:
    """Whether the listed files are as the manifest says. `wrong` maps a path to `missing`, `changed` or `unreadable`.

    `complete`: false after an export that was cut off; what it lists is still right.
    """

    complete: bool
    checked: int
    wrong: Mapping[str, str]

    @property
    def valid(self) -> bool:
        return not self.wrong


def verify_export(path: Path | str) -> MirrorCheck:
    """Compares every file that the manifest of the folder lists. Raises ExportFailed when there is no manifest."""
    with Folder(Path(path).resolve(strict=True)) as folder:
        manifest = read_manifest(folder)
        if manifest is None:
            raise ExportFailed("There is no manifest in this folder.")
        wrong = {
            file.path: problem for file in manifest.files if (problem := _problem(folder, file)) is not None
        }
    return MirrorCheck(manifest.complete, len(manifest.files), wrong)


def _problem(folder: Folder, file: Listed) -> str | None:
    try:
        digest = folder.digest(file.path)
    except OSError:
        return "unreadable"
    if digest is None:
        return "missing"
    return None if digest == file.sha256 else "changed"
