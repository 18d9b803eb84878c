"""Import and export: the mirror of files, written now or taken as a zip, and a team's files taken in (SPEC 8; SPEC 9)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.http import HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_POST, require_safe

from governance.pages import kept_uploads
from governance.pages.forms.files import ConfirmForm, ImportForm
from governance.pages.queues.files import report_page, workspace_of
from governance.pages.views.access import Access, PageRequest, project_page
from governance.pages.views.attempts import attempt
from governance.pages.views.replies import is_partial, outcome, page
from governance.pages.views.rows import sentence_for
from governance.people.policies import Action
from memory.errors import Conflict, ExportFailed, Invalid
from memory.mirror.importing import import_tree
from memory.mirror.reading.import_report import ImportReport
from memory.mirror.reading.tree import NotASquadTree, SourceTree, UnsafeTree, read_zip
from memory.mirror.writing import export as mirror
from memory.mirror.writing.workspace import workspace_tree

FILES = "governance/files.html"
DRAINED = 4
"""How many times the largest upload is read and thrown away, so that a browser gets to see why its file was not taken."""


@require_safe
@project_page(Action.EXPORT)
def files(request: PageRequest, access: Access) -> HttpResponse:
    """What the last export left, and the forms to export and to import."""
    return show(request, access)


def show(
    request: PageRequest, access: Access, form: ImportForm | None = None, status: int = 200, **more: Any
) -> HttpResponse:
    return page(
        request,
        access,
        FILES,
        _context(access, form, **more),
        section="files",
        fragment="results",
        status=status,
    )


def _context(access: Access, form: ImportForm | None = None, **more: Any) -> dict[str, Any]:
    return {
        "workspace": workspace_of(access.project),
        "form": form or ImportForm(workspace=_has_workspace()),
        "most": settings.MAX_UPLOAD_BYTES,
        **more,
    }


def _has_workspace() -> bool:
    return bool(settings.AGENTWEAVER_WORKSPACE_ROOT)


# --- export -------------------------------------------------------------------------------------------------------


@require_POST
@project_page(Action.EXPORT)
def export(request: PageRequest, access: Access) -> HttpResponse:
    """Write the mirror into the workspace now, and show what was written, kept and left alone."""
    try:
        report = mirror.export_to_workspace(project_id=access.project.pk, now=timezone.now())
    except (Conflict, ExportFailed) as failure:
        return show(request, access, status=409, export_problem=failure.detail)
    said = f"{len(report.files)} files are current, {len(report.written)} of them written now."
    return _done(request, access, said, exported=report)


def _done(request: PageRequest, access: Access, said: str, **more: Any) -> HttpResponse:
    """The page after something was done, for htmx with the counters beside the navigation."""
    context = _context(access, **more, said=said)
    if is_partial(request):
        return outcome(request, access, f"{FILES}#results", context, said=said)
    return page(request, access, FILES, context, section="files")


@require_safe
@project_page(Action.EXPORT)
def export_zip(request: PageRequest, access: Access) -> HttpResponse:
    """The mirror as a zip."""
    try:
        stream, _ = mirror.export_zip(project_id=access.project.pk, now=timezone.now())
    except ExportFailed as failure:
        return show(request, access, status=409, export_problem=failure.detail)
    headers = {
        "Content-Disposition": f'attachment; filename="{access.project.slug}.zip"',
        "Cache-Control": "no-store",
    }
    return HttpResponse(stream.read(), content_type="application/zip", headers=headers)


# --- import -------------------------------------------------------------------------------------------------------


@csrf_exempt
@require_POST
@project_page(Action.IMPORT)
def check(request: PageRequest, access: Access) -> HttpResponse:
    """A dry run: the whole report on the page, nothing written. The upload is kept for the import itself."""
    return _bounded(request, access, _check)


@csrf_exempt
@require_POST
@project_page(Action.IMPORT)
def take(request: PageRequest, access: Access) -> HttpResponse:
    """Import exactly what the dry run has shown; when anything of it would be different now, nothing, and show it anew."""
    return _bounded(request, access, _take)


def _bounded(request: PageRequest, access: Access, view: Any) -> HttpResponse:
    """Refuses what is too large before anything parses it, then asks for the form's token: reading the token reads the body."""
    if _length(request) <= settings.MAX_UPLOAD_BYTES:
        answered: HttpResponse = csrf_protect(view)(request, access)
        return answered
    left = DRAINED * settings.MAX_UPLOAD_BYTES
    while left > 0 and (chunk := request.read(1 << 16)):
        left -= len(chunk)
    form = ImportForm({}, workspace=_has_workspace())
    form.full_clean()
    form.errors.clear()
    form.add_error("file", f"The file is too large: at most {settings.MAX_UPLOAD_BYTES // 1_000_000} MB.")
    return show(request, access, form, 422)


def _length(request: PageRequest) -> int:
    """What the request says of its size; Django reads no more than this, and nothing when it is no number."""
    said = request.META.get("CONTENT_LENGTH") or "0"
    return int(said) if said.isascii() and said.isdigit() else 0


def _check(request: PageRequest, access: Access) -> HttpResponse:
    form = ImportForm(request.POST, request.FILES, workspace=_has_workspace())
    return _dry_run(request, access, form)


def _dry_run(
    request: PageRequest, access: Access, form: ImportForm, problem: str = "", status: int = 200
) -> HttpResponse:
    """The report of a dry run, with the form that takes it in."""

    def verb() -> HttpResponse:
        report = _import(access, form, dry_run=True)
        kept, unkept = _keep(access, form)
        confirm = ConfirmForm(
            workspace=_has_workspace(),
            initial={**form.cleaned_data, "kept": kept, "fingerprint": report.fingerprint},
        )
        shown = report_page(report, form.cleaned_data["sources"])
        return show(
            request, access, status=status, problem=problem, shown=shown, confirm=confirm, unkept=unkept
        )

    def again(form: Any, status: int) -> HttpResponse:
        return show(request, access, form, status)

    return attempt(form, verb, again)


def _take(request: PageRequest, access: Access) -> HttpResponse:
    form = ConfirmForm(request.POST, request.FILES, workspace=_has_workspace())

    def verb() -> HttpResponse:
        try:
            report = _import(access, form, dry_run=False)
        except Conflict as changed:
            return _dry_run(request, access, form, sentence_for(changed), 409)
        kept_uploads.forget(access.project.pk, access.actor.username)
        said = f"{report.taken} record{'s' if report.taken != 1 else ''} came in."
        return _done(request, access, said, shown=report_page(report, form.cleaned_data["sources"]))

    def again(form: Any, status: int) -> HttpResponse:
        return show(request, access, form, status)

    return attempt(form, verb, again)


def _keep(access: Access, form: ImportForm) -> tuple[str, bool]:
    """The SHA-256 under which the upload waits for its import, and whether it could not be kept."""
    given = form.cleaned_data["file"]
    if not form.is_upload or not given:
        return form.cleaned_data["kept"], False
    try:
        return kept_uploads.keep(access.project.pk, access.actor.username, given), False
    except OSError:
        return "", True


def _import(access: Access, form: ImportForm, *, dry_run: bool) -> ImportReport:
    with (
        _tree(access, form) as tree,
        kept_uploads.Progress(access.project.pk, access.actor.username) as progress,
    ):
        return import_tree(
            project_id=access.project.pk, actor=access.actor, tree=tree, sources=form.cleaned_data["sources"],
            dry_run=dry_run, charters=access.may_decide, expected=form.cleaned_data.get("fingerprint"),
            progress=progress, now=timezone.now(),
        )  # fmt: skip


@contextmanager
def _tree(access: Access, form: ImportForm) -> Iterator[SourceTree]:
    """The files, from wherever the form says. Raises Invalid with what is wrong with them, beside the field."""
    field = "file" if form.is_upload else "place"
    try:
        if not form.is_upload:
            yield workspace_tree(access.project)
        elif form.cleaned_data["file"]:
            yield read_zip(form.cleaned_data["file"])
        else:
            with kept_uploads.kept(
                access.project.pk, access.actor.username, form.cleaned_data["kept"]
            ) as stream:
                if stream is None:
                    raise Invalid({"file": ["The zip is no longer kept here. Choose it again."]})
                yield read_zip(stream)
    except (NotASquadTree, UnsafeTree) as refused:
        raise Invalid({field: [refused.detail]}) from refused


@require_safe
@project_page(Action.IMPORT)
def progress(request: PageRequest, access: Access) -> HttpResponse:
    """How far this person's import is; empty when none is under way."""
    told = kept_uploads.progress_of(access.project.pk, access.actor.username)
    return JsonResponse(told or {}, headers={"Cache-Control": "no-store"})
