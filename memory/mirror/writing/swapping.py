"""Putting a rendered mirror in the place of the old one (SPEC 8): whole or not at all, whatever happens in between.

1. every new file and both manifests are written beside the mirror and synced; the files to be replaced get a second name there;
2. a manifest that lists only what stays as it is, and names the rest as changing, takes the manifest's place;
3. each new file takes its place by a rename, each file without rows goes;
4. the new manifest takes its place.

A kill leaves the old manifest with the old files, the one of step 2 with files that are each whole, or the new one: whichever it is,
what it lists is what is there. A failure that the process lives through puts everything back. A file at one of our paths that is
not as we wrote it, or that we did not write, is never overwritten: it keeps a copy under `.agentweaver/kept/`, named in the answer.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from memory.errors import Conflict, ExportFailed
from memory.mirror.writing.folders import Folder
from memory.mirror.writing.manifest import Changing, Manifest, read_manifest
from memory.mirror.writing.paths import checked_path
from memory.mirror.writing.rendering import AGENTS, INBOX, MANIFEST, MirrorFile

logger = logging.getLogger(__name__)

KEPT = ".agentweaver/kept"
_STAGING = ".agentweaver/export-"
MAX_FOREIGN = 500
"""Foreign files that an answer names."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A file that was not as we wrote it. `copy` is where its content is now: elsewhere when ours took its place, else where it was."""

    path: str
    copy: str
    reason: str


@dataclass(frozen=True, slots=True)
class Swapped:
    """What writing did. `manifest` is the one that lies there now."""

    manifest: Manifest
    written: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[Kept, ...]
    foreign: tuple[str, ...]
    """Files in the mirror's folders that we did not write; they were not touched. At most `MAX_FOREIGN` are named."""


@dataclass
class _Plan:
    """What has to happen: files to write, files to remove, the digest each path has now."""

    writes: list[MirrorFile] = field(default_factory=list)
    removals: list[str] = field(default_factory=list)
    present: dict[str, str] = field(default_factory=dict)
    kept: list[Kept] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return [*(file.path for file in self.writes), *self.removals]


def swap(folder: Folder, files: Sequence[MirrorFile], manifest: Manifest) -> Swapped:
    """Makes the folder hold exactly `files` of ours. The folder must be locked. Raises ExportFailed, with the old files whole."""
    for file in files:
        checked_path(file.path)
    try:
        return _swap(folder, files, manifest)
    except OSError as error:
        raise ExportFailed(f"The files could not be written: {_told(error)}.") from error


def _told(error: OSError) -> str:
    """What is wrong with which step of a path; names above the folder are nobody's business."""
    name = str(error.filename or "")
    return (
        f"{name!r}: {error.strerror}" if name and not name.startswith("/") else error.strerror or str(error)
    )


def _swap(folder: Folder, files: Sequence[MirrorFile], manifest: Manifest) -> Swapped:
    old = read_manifest(folder)
    if old and old.project != manifest.project:
        raise Conflict(
            f"This folder holds the files of another project, {old.slug}. Remove {MANIFEST} to hand it over.",
            code="other_project",
        )
    _clear(folder)
    plan = _planned(folder, files, old)
    if not plan.paths and old and old == replace(manifest, exported_at=old.exported_at):
        # Nothing changed: the moment stays the one at which these files were written.
        manifest = old
    else:
        _Swap(folder, plan, manifest, old).carry_out()
    foreign = _foreign(folder, {file.path for file in files} | {kept.copy for kept in plan.kept})
    return Swapped(
        manifest, tuple(file.path for file in plan.writes), tuple(plan.removals), tuple(plan.kept), foreign
    )


def _clear(folder: Folder) -> None:
    """Removes what an export that was cut off left beside the mirror."""
    above, _, prefix = _STAGING.rpartition("/")
    for name, is_folder in folder.names(above):
        if is_folder and name.startswith(prefix):
            folder.remove_tree(f"{above}/{name}")


def _planned(folder: Folder, files: Sequence[MirrorFile], old: Manifest | None) -> _Plan:
    plan = _Plan()
    owned = old.owned() if old else {}
    for file in files:
        present = folder.digest(file.path)
        if present is not None:
            plan.present[file.path] = present
        if present != file.sha256:
            plan.writes.append(file)
            if present is not None and present not in owned.get(file.path, ()):
                plan.kept.append(_copy_of(file.path, present, file.path in owned))
    for path in sorted(set(owned) - {file.path for file in files}):
        present = folder.digest(path)
        if present in owned[path]:
            plan.present[path] = present
            plan.removals.append(path)
        elif present is not None:
            plan.kept.append(Kept(path, path, "edited"))
    return plan


def _copy_of(path: str, digest: str, was_ours: bool) -> Kept:
    return Kept(path, f"{KEPT}/{digest[:12]}/{path}", "edited" if was_ours else "not_ours")


@dataclass
class _Swap:
    """One swap: everything is prepared beside the mirror first, then put in place step by step, each step known how to undo."""

    folder: Folder
    plan: _Plan
    manifest: Manifest
    old: Manifest | None
    staging: str = field(default_factory=lambda: f"{_STAGING}{secrets.token_hex(8)}")
    done: list[str] = field(default_factory=list)

    def carry_out(self) -> None:
        try:
            self._prepare()
            self._put()
        except BaseException:
            self._undo()
            raise
        finally:
            self._tidy()

    def _prepare(self) -> None:
        for number, file in enumerate(self.plan.writes):
            self.folder.write_new(f"{self.staging}/new-{number}", file.data)
        self.folder.write_new(f"{self.staging}/during", self._during().as_bytes())
        self.folder.write_new(f"{self.staging}/after", self.manifest.as_bytes())
        for number, path in enumerate(self.plan.paths):
            if path in self.plan.present:
                self.folder.link(path, f"{self.staging}/old-{number}")
        if self.folder.digest(MANIFEST) is not None:
            self.folder.link(MANIFEST, f"{self.staging}/before")
        for kept in self.plan.kept:
            if kept.copy != kept.path and self.folder.digest(kept.copy) is None:
                self.folder.link(kept.path, kept.copy)
        self.folder.sync([f"{self.staging}/new", *(kept.copy for kept in self.plan.kept)])

    def _during(self) -> Manifest:
        """The manifest while files are being put in place: it lists only what does not change, and what was ours already."""
        new = {file.path: file.sha256 for file in self.plan.writes}
        changing = tuple(
            Changing(path, self.plan.present.get(path), new.get(path)) for path in self.plan.paths
        )
        stays = tuple(file for file in self.manifest.files if file.path not in new)
        return replace(self.manifest, files=stays, changing=changing)

    def _put(self) -> None:
        self.folder.move(f"{self.staging}/during", MANIFEST)
        self.done.append(MANIFEST)
        self.folder.sync([MANIFEST])
        for number, file in enumerate(self.plan.writes):
            self.folder.move(f"{self.staging}/new-{number}", file.path)
            self.done.append(file.path)
        for path in self.plan.removals:
            self.folder.remove(path)
            self.done.append(path)
        self.folder.sync(self.plan.paths)
        self.folder.move(f"{self.staging}/after", MANIFEST)
        self.folder.sync([MANIFEST])

    def _undo(self) -> None:
        """Puts back what was there, the manifest last."""
        numbers = {path: number for number, path in enumerate(self.plan.paths)}
        try:
            for path in reversed(self.done):
                old = "before" if path == MANIFEST else f"old-{numbers[path]}"
                if self.folder.digest(f"{self.staging}/{old}") is not None:
                    self.folder.move(f"{self.staging}/{old}", path)
                elif self.folder.digest(path) is not None:
                    self.folder.remove(path)
            self.folder.sync(self.done)
        except OSError:
            # The manifest of step 2 may still lie there: it lists nothing that is not as it says.
            logger.exception("An export could not be undone; the next one finishes it")

    def _tidy(self) -> None:
        try:
            self.folder.remove_tree(self.staging)
        except OSError:
            logger.exception("The folder of an export could not be removed; the next one removes it")


def _foreign(folder: Folder, ours: set[str]) -> tuple[str, ...]:
    """Files where the mirror writes that are not the mirror's."""
    places = [".squad", INBOX, ".squad/identity", ".agentweaver/context"]
    places += [f"{AGENTS}/{name}" for name, is_folder in folder.names(AGENTS) if is_folder]
    found = (
        f"{place}/{name}" for place in places for name, is_folder in folder.names(place) if not is_folder
    )
    named = sorted(path for path in found if path not in ours and path != MANIFEST)
    # A name on a disk need not be UTF-8.
    return tuple(os.fsencode(path).decode("utf-8", "replace") for path in named[:MAX_FOREIGN])
