"""The ledger into files (SPEC 8, Export): always from the database, never from a file that is there (B07).

One consistent read, then the files, then one swap. A failure anywhere leaves the old files whole and raises a domain error (B29).
"""

from __future__ import annotations

import io
import logging
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import Q

from memory.enums import MemoryType, TrustState
from memory.errors import ExportFailed, NotFound
from memory.mirror.writing.folders import Folder
from memory.mirror.writing.manifest import manifest_of
from memory.mirror.writing.rendering import MANIFEST, MirrorFile, Rows, render
from memory.mirror.writing.swapping import Kept, Swapped, swap
from memory.mirror.writing.workspace import workspace_of
from memory.models import AgentMemory, Decision, DecisionInboxEntry, LedgerEvent, Project, SessionContext

logger = logging.getLogger(__name__)

LOCK_SECONDS = 30.0
_FIRST_OF_ZIP = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote. `exported_at` is the moment at which the database was read, `epoch` the project's then.

    `files` is the whole mirror, also what had not changed; `written` and `removed` say what did.
    """

    exported_at: datetime
    epoch: int
    files: tuple[MirrorFile, ...]
    counts: dict[str, int]
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[Kept, ...] = ()
    foreign: tuple[str, ...] = ()


def export_to_workspace(*, project_id: UUID, now: datetime) -> ExportReport:
    """Write the mirror into the project's workspace folder.

    Raises NotFound; Conflict `no_workspace`, `other_project`; ExportFailed with the old files whole.
    """
    project = Project.objects.filter(pk=project_id).first()
    if project is None:
        raise NotFound
    with workspace_of(project) as folder:
        return _export(project_id, folder, now)


def export_to_folder(*, project_id: UUID, path: Path, now: datetime) -> ExportReport:
    """Write the mirror into any folder of whoever runs the server, made when it is missing. Raises as `export_to_workspace`."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        folder = Folder(path.resolve(strict=True))
    except OSError as error:
        raise ExportFailed(f"The folder cannot be opened: {error.strerror}.") from error
    with folder:
        return _export(project_id, folder, now)


def _export(project_id: UUID, folder: Folder, now: datetime) -> ExportReport:
    try:
        with folder.locked(LOCK_SECONDS):
            # Read behind the lock: of two exports the later one never writes the older state.
            rows, files = _mirror(project_id)
            swapped = swap(folder, files, manifest_of(rows.project, files, now))
    except TimeoutError as waiting:
        raise ExportFailed("Another export of this folder is running.") from waiting
    return _report(rows, files, now, swapped)


def export_zip(*, project_id: UUID, now: datetime) -> tuple[IO[bytes], ExportReport]:
    """The mirror as a zip, at its beginning, and what is in it. The same rows and `now` give the same bytes.

    Raises NotFound, ExportFailed.
    """
    rows, files = _mirror(project_id)
    manifest = manifest_of(rows.project, files, now)
    # The files are in memory already, so a temporary file for their smaller zip would save nothing and could be left open.
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in [*((file.path, file.data) for file in files), (MANIFEST, manifest.as_bytes())]:
            archive.writestr(_zip_entry(path), data)
    stream.seek(0)
    return stream, _report(rows, files, now)


def _zip_entry(path: str) -> zipfile.ZipInfo:
    """An entry without the time and the system it was made on."""
    entry = zipfile.ZipInfo(path, _FIRST_OF_ZIP)
    entry.create_system, entry.external_attr, entry.compress_type = 3, 0o100644 << 16, zipfile.ZIP_DEFLATED
    return entry


def _report(
    rows: Rows, files: Sequence[MirrorFile], now: datetime, swapped: Swapped | None = None
) -> ExportReport:
    done: dict[str, Any] = {}
    if swapped is not None:
        done = {name: getattr(swapped, name) for name in ("written", "removed", "kept", "foreign")}
    return ExportReport(now, rows.project.epoch, tuple(files), _counts(rows), **done)


def _counts(rows: Rows) -> dict[str, int]:
    patterns = len(rows.patterns)
    return {
        "decisions": len(rows.decisions),
        "entries": len(rows.entries),
        "memories": len(rows.memories) - patterns,
        "patterns": patterns,
        "sessions": int(rows.session is not None),
    }


def _mirror(project_id: UUID) -> tuple[Rows, list[MirrorFile]]:
    try:
        rows = read_rows(project_id)
        return rows, render(rows)
    except (DatabaseError, ValueError) as error:
        logger.exception("Export of project %s failed", project_id)
        raise ExportFailed("The rows could not be read; the server's log says more.") from error


def read_rows(project_id: UUID) -> Rows:
    """What the mirror holds, all of one moment: nobody writes while it is read. Raises NotFound.

    Active approved decisions, pending entries, memories that are neither legacy nor retired, of patterns the approved ones, and
    the open session.
    """
    with transaction.atomic():
        project = Project.objects.select_for_update(no_key=True).filter(pk=project_id).first()
        if project is None:
            raise NotFound
        mine = {"project": project}
        decisions = Decision.objects.active().filter(trust_state=TrustState.APPROVED, **mine)
        approved_if_pattern = ~Q(type=MemoryType.PATTERN) | Q(trust_state=TrustState.APPROVED)
        memories = (
            AgentMemory.objects.live()
            .exclude(trust_state=TrustState.LEGACY)
            .filter(approved_if_pattern, **mine)
        )
        session = (
            SessionContext.objects.filter(ended_at__isnull=True, **mine).select_related("imported").first()
        )
        return Rows(
            project=project,
            decisions=list(decisions.select_related("agent", "imported")),
            entries=list(
                DecisionInboxEntry.objects.pending().filter(**mine).select_related("agent", "imported")
            ),
            memories=list(memories.select_related("agent", "imported")),
            session=session,
            session_updated=_last_change(session),
        )


def _last_change(session: SessionContext | None) -> datetime | None:
    """When the session was last written: the ledger knows, the row does not."""
    if session is None:
        return None
    events = LedgerEvent.objects.filter(project_id=session.project_id, target=f"session:{session.pk}")
    return events.order_by("-number").values_list("at", flat=True).first()


def as_json(report: ExportReport) -> dict[str, Any]:
    """The report with the words of the API."""
    return {
        "exported_at": report.exported_at.isoformat().replace("+00:00", "Z"),
        "epoch": report.epoch,
        "files": [
            {"path": f.path, "sha256": f.sha256, "bytes": len(f.data), "rows": dict(f.rows)}
            for f in report.files
        ],
        **report.counts,
        "written": list(report.written),
        "removed": list(report.removed),
        "kept": [{"path": kept.path, "copy": kept.copy, "reason": kept.reason} for kept in report.kept],
        "foreign": list(report.foreign),
    }
