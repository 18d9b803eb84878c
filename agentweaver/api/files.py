"""/projects/{p}/memory/export, export.zip and import (SPEC 7 and 8): the file mirror over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.http import FileResponse, QueryDict
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema_field
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from agentweaver.api.authentication import actor_of
from agentweaver.api.fields import Body, Flag, read
from agentweaver.api.routing import operation
from agentweaver.api.rows import Row
from governance.people import policies
from governance.people.policies import Action
from memory.errors import Invalid
from memory.mirror.importing import import_tree
from memory.mirror.reading import import_report
from memory.mirror.reading.sources import DEFAULT_SOURCES, SOURCES
from memory.mirror.reading.tree import NotASquadTree, SourceTree, UnsafeTree, read_zip
from memory.mirror.writing import export
from memory.mirror.writing.workspace import workspace_tree
from memory.models import Project

_operation = partial(operation, tag="files")


class Zip(BaseRenderer):
    """Lets a request ask for `application/zip`; the file itself is written by the view."""

    media_type = "application/zip"
    format = "zip"
    charset = None
    render_style = "binary"

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> bytes:
        return bytes(data)


# --- bodies -------------------------------------------------------------------------------------------------------


@extend_schema_field(
    {
        "oneOf": [
            {"type": "array", "items": {"type": "string", "enum": list(SOURCES)}, "maxItems": 100},
            {"type": "string", "description": "Comma-separated."},
        ]
    }
)
class Sources(serializers.Field[list[str], Any, list[str], Any]):
    """Which sources are taken: a list, or one comma-separated string."""

    default_error_messages = {
        "invalid": "This must be a list of strings or one comma-separated string.",
        "unknown": f"Must be of: {', '.join(SOURCES)}.",
    }

    def to_internal_value(self, data: Any) -> list[str]:
        parts = data.split(",") if isinstance(data, str) else data
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            self.fail("invalid")
        given = [part.strip() for part in parts if part.strip()]
        if not set(given) <= set(SOURCES):
            self.fail("unknown")
        return given

    def to_representation(self, value: list[str]) -> list[str]:
        return list(value)


class Said(serializers.ChoiceField):
    """A flag in a form, where everything is text."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=["true", "false"], **kwargs)


_DRY_RUN = "Report what would come in, write nothing."
_SOURCES = f"Default: {', '.join(name for name in SOURCES if name in DEFAULT_SOURCES)}."


class ImportFromWorkspace(Body):
    source = serializers.ChoiceField(  # type: ignore[assignment]
        choices=["workspace"], help_text="The project's workspace folder."
    )
    dry_run = Flag(required=False, help_text=_DRY_RUN)
    sources = Sources(required=False, help_text=_SOURCES)


class ImportUpload(Body):
    file = serializers.FileField(allow_empty_file=True, help_text="A zip of the folder that holds `.squad`.")
    dry_run = Said(required=False, help_text=_DRY_RUN)
    sources = Sources(required=False, help_text=_SOURCES)


# --- answers ------------------------------------------------------------------------------------------------------


class RowsOfFile(serializers.DictField):
    child = serializers.ListField(child=serializers.IntegerField())


class ExportedFileRow(Row):
    path = serializers.CharField()
    sha256 = serializers.CharField()
    bytes = serializers.IntegerField()
    rows = RowsOfFile(help_text="The ids of the rows in the file, by kind.")


class KeptFileRow(Row):
    """A file that was not as we wrote it: its content is at `copy` now."""

    path = serializers.CharField()
    copy = serializers.CharField()
    reason = serializers.ChoiceField(choices=["edited", "not_ours"])


class ExportRow(Row):
    """What an export wrote. The database was read at `exported_at`."""

    exported_at = serializers.DateTimeField()
    epoch = serializers.IntegerField()
    files = ExportedFileRow(many=True)
    decisions = serializers.IntegerField()
    entries = serializers.IntegerField()
    memories = serializers.IntegerField()
    patterns = serializers.IntegerField()
    sessions = serializers.IntegerField()
    written = serializers.ListField(child=serializers.CharField(), help_text="Files whose content changed.")
    removed = serializers.ListField(child=serializers.CharField(), help_text="Files without rows.")
    kept = KeptFileRow(many=True)
    foreign = serializers.ListField(child=serializers.CharField(), help_text="Files of others; untouched.")


class FileCountRow(Row):
    path = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    found = serializers.IntegerField()
    taken = serializers.IntegerField()
    skipped = serializers.IntegerField()


class NotSelectedRow(Row):
    source = serializers.CharField()  # type: ignore[assignment]
    count = serializers.IntegerField()
    reason = serializers.CharField()


class UnreadRow(Row):
    path = serializers.CharField()
    reason = serializers.CharField()
    detail = serializers.CharField()


class NoteRow(Row):
    path = serializers.CharField()
    line = serializers.IntegerField()
    code = serializers.CharField()
    detail = serializers.CharField()


class TakenRow(Row):
    path = serializers.CharField()
    line = serializers.IntegerField()
    kind = serializers.CharField()
    agent = serializers.CharField()
    words = serializers.CharField()
    id = serializers.IntegerField(allow_null=True, help_text="null in a dry run.")
    slug = serializers.CharField()
    replaces = serializers.CharField(help_text="The place of the text it replaces.")
    near = serializers.CharField(help_text="The place of one that differs in letter case only.")


class SkippedRow(Row):
    path = serializers.CharField()
    line = serializers.IntegerField()
    source = serializers.CharField()  # type: ignore[assignment]
    kind = serializers.CharField()
    words = serializers.CharField()
    reason = serializers.CharField()
    detail = serializers.CharField()


class Counts(serializers.DictField):
    child = serializers.IntegerField()


class ImportRow(Row):
    """What an import took and skipped: found = taken + skipped, in total and for every file."""

    dry_run = serializers.BooleanField()
    root = serializers.CharField()  # type: ignore[assignment]
    found = serializers.IntegerField()
    taken = serializers.IntegerField()
    skipped = serializers.IntegerField()
    taken_by_kind = Counts()
    skipped_by_reason = Counts()
    not_selected = NotSelectedRow(many=True)
    files = FileCountRow(many=True)
    unread = UnreadRow(many=True)
    notes = NoteRow(many=True)
    taken_items = TakenRow(many=True)
    skipped_items = SkippedRow(many=True)


# --- routes -------------------------------------------------------------------------------------------------------


@_operation(Action.EXPORT, answers={200: ExportRow}, problem_codes=[409])
def export_memory(request: Request, project: Project) -> Response:
    """Write the project's files into its workspace folder, from the database. A failure leaves the old files whole."""
    report = export.export_to_workspace(project_id=project.pk, now=timezone.now())
    return Response(export.as_json(report))


@_operation(
    Action.EXPORT,
    answers={
        (200, "application/zip"): OpenApiResponse(OpenApiTypes.BINARY, description="The files as a zip.")
    },
)
def export_zip(request: Request, project: Project) -> FileResponse:
    """The project's files as a zip."""
    stream, _ = export.export_zip(project_id=project.pk, now=timezone.now())
    headers = {"Cache-Control": "no-store"}
    return FileResponse(
        stream,
        as_attachment=True,
        filename=f"{project.slug}.zip",
        content_type="application/zip",
        headers=headers,
    )


@_operation(
    Action.IMPORT,
    body={"application/json": ImportFromWorkspace, "multipart/form-data": ImportUpload},
    answers={200: ImportRow},
    problem_codes=[409],
)
def import_memory(request: Request, project: Project) -> Response:
    """Take a team's files in as legacy rows, from a zip or from the project's workspace folder. Importing twice adds nothing.

    Charters are taken for agents without one, and only when the caller may decide: they reach a prompt as they are.
    """
    actor = actor_of(request)
    with _asked_for(request, project) as (tree, dry_run, sources):
        report = import_tree(
            project_id=project.pk, actor=actor, tree=tree, sources=sources, dry_run=dry_run,
            charters=policies.can(actor, Action.DECIDE, project), now=timezone.now(),
        )  # fmt: skip
    return Response(import_report.as_json(report))


@contextmanager
def _asked_for(request: Request, project: Project) -> Iterator[tuple[SourceTree, bool, list[str]]]:
    """The tree, whether it is a dry run, and the sources. A tree that is refused is bad input in `file` or `source`."""
    uploaded = bool(request.content_type) and request.content_type.startswith("multipart/")
    given = read(ImportUpload if uploaded else ImportFromWorkspace, request)
    sources = given.get("sources", list(DEFAULT_SOURCES))
    try:
        if uploaded:
            _refuse_repeats(request)
            yield read_zip(given["file"]), given.get("dry_run") == "true", sources
        else:
            yield workspace_tree(project), given.get("dry_run", False), sources
    except (NotASquadTree, UnsafeTree) as refused:
        raise Invalid({"file" if uploaded else "source": [refused.detail]}) from refused


def _refuse_repeats(request: Request) -> None:
    form: QueryDict = request.data  # type: ignore[assignment]
    repeated = [name for name, values in form.lists() if len(values) > 1]
    if repeated:
        raise Invalid({name: ["Given more than once."] for name in repeated})
