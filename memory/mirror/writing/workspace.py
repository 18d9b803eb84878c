"""A project's own folder on the server (SPEC 8): inside AGENTWEAVER_WORKSPACE_ROOT or refused."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from memory.errors import Conflict, ExportFailed
from memory.mirror.reading.tree import NotASquadTree, SourceTree, read_folder
from memory.mirror.writing.folders import Folder
from memory.mirror.writing.manifest import Manifest, read_manifest
from memory.mirror.writing.paths import checked_path, safe_names
from memory.models import Project


def workspace_of(project: Project) -> Folder:
    """The project's workspace folder, made when it is missing; close it after use.

    Raises Conflict `no_workspace` when this installation has none, ExportFailed when the folder is not inside the root.
    """
    root, steps = _place(project)
    try:
        with Folder(root) as folder:
            return folder.inside(steps)
    except OSError as error:
        raise ExportFailed(f"The workspace cannot be opened: {error.strerror}.") from error


def workspace_tree(project: Project) -> SourceTree:
    """What the project's workspace folder holds, to be imported.

    Raises Conflict `no_workspace`, NotASquadTree when there is nothing to read, UnsafeTree.
    """
    root, steps = _place(project)
    try:
        with Folder(root) as folder, folder.inside(steps, make=False):
            return read_folder(root.joinpath(*steps))
    except OSError as error:
        raise NotASquadTree("The project has no workspace folder yet, or it cannot be opened.") from error


def last_export(project: Project) -> Manifest | None:
    """What the manifest in the project's workspace folder says; None when nothing was exported there. Makes no folder.

    Raises Conflict `no_workspace`, ExportFailed when the folder cannot be opened.
    """
    root, steps = _place(project)
    try:
        with Folder(root) as folder, folder.inside(steps, make=False) as workspace:
            return read_manifest(workspace)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ExportFailed(f"The workspace cannot be opened: {error.strerror}.") from error


def _place(project: Project) -> tuple[Path, list[str]]:
    root = settings.AGENTWEAVER_WORKSPACE_ROOT
    if not root:
        raise Conflict("This installation keeps no workspace folders.", code="no_workspace")
    try:
        found = Path(root).resolve(strict=True)
    except OSError as error:
        raise ExportFailed(f"The workspace root cannot be opened: {error.strerror}.") from error
    return found, checked_path(project.workspace or safe_names([project.slug])[project.slug])
