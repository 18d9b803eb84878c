"""The ledger's tables in the Django admin: all of them can be looked at, none can be changed here (SPEC 5 and 9).

Who wrote a row, how far it is trusted and what the ledger says of it is decided by verbs, and a superuser has no power to decide. Every row
leads to its audit trail. Who gets in at all is the site's matter (`governance.admin_site`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.actors import SCRIBE_PREFIX
from memory.ledger.changes import KINDS
from memory.models import (
    Agent,
    AgentMemory,
    ContextReceipt,
    ContextSnapshot,
    Decision,
    DecisionInboxEntry,
    ImportedRecord,
    LedgerEvent,
    Project,
    Run,
    SessionContext,
    SnapshotRow,
)
from memory.values import looks_like_uuid

if TYPE_CHECKING:
    Admin = admin.ModelAdmin[Any]
else:
    Admin = admin.ModelAdmin

BEGINNING = 90
"""Characters of a text that a list shows."""


class Rows(ChangeList):
    """A list without the long texts of its rows; `beginning` is how the text named by the admin's `excerpt` begins."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        looking: Any = self.model_admin
        rows = super().get_queryset(request, exclude_parameters).defer(*looking.texts)
        return rows.annotate(beginning=Left(looking.excerpt, BEGINNING)) if looking.excerpt else rows


class Looking(Admin):
    """A table that is looked at: every column of a row, a list with filters, a link to where the row's story is told."""

    excerpt = ""
    """The text whose beginning a list shows."""
    texts: tuple[str, ...] = ()
    """Columns a list does not need, as they can be long; also those of joined rows."""
    hidden: tuple[str, ...] = ()
    """Columns that nobody sees."""
    hint = ""
    """What the search of a list finds, where that is not any word."""
    leads = True
    """Whether a row leads anywhere: those that belong to no project do not."""
    actions: Any = None
    list_per_page = 50
    # Two counts of a large table for one page are one too many.
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    view_on_site = False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.is_active and getattr(request.user, "is_superuser", False)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        hint = f"Search: {self.hint}" if self.hint else None
        return super().changelist_view(request, {**(extra_context or {}), "subtitle": hint})

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return Rows

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        columns = [column.name for column in self.model._meta.concrete_fields]
        return [*(["audit"] if self.leads else []), *(name for name in columns if name not in self.hidden)]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return self.get_fields(request, obj)

    @admin.display(description="text")
    def beginning(self, row: Any) -> str:
        return str(row.beginning)

    @admin.display(description="audit")
    def audit(self, row: Any) -> SafeString:
        """Where the row's story is told."""
        return trail_of(row)


def link(words: str, name: str, *args: Any) -> SafeString:
    """A link to a page of the product, by the page's name."""
    return format_html('<a href="{}">{}</a>', reverse(f"governance:{name}", args=args), words)


def trail_of(row: Any) -> SafeString:
    """A link to the audit trail of a row of the ledger; needs its project loaded."""
    project = row if isinstance(row, Project) else row.project
    return link("Audit trail", "trail", project.slug, KINDS[type(row)], row.pk)


class RunFilter(admin.SimpleListFilter):
    """By the run a row comes from: its id, or the orchestrator's own. Typed, since a list of all runs has no end."""

    title = "run"
    parameter_name = "run"
    template = "admin/run_filter.html"
    column = "source_run"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("", "any")]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        given = changelist.filter_params.items()
        kept = [(name, value) for name, values in given for value in values]
        yield {
            "kept": [(name, value) for name, value in kept if name != self.parameter_name],
            "value": self.value() or "",
        }

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        wanted = (self.value() or "").strip()
        return self.of_run(queryset, wanted) if wanted else queryset

    def of_run(self, rows: QuerySet[Any], wanted: str) -> QuerySet[Any]:
        if looks_like_uuid(wanted):
            return rows.filter(**{self.column: wanted})
        return rows.filter(**{f"{self.column}__external_id": wanted})


class ReceiptRunFilter(RunFilter):
    """By the run that was told."""

    column = "run"


class EventRunFilter(RunFilter):
    """By the run that did something, whose scribe did, or that it happened to. With the run's project an index finds them."""

    def of_run(self, rows: QuerySet[Any], wanted: str) -> QuerySet[Any]:
        runs = (
            Run.objects.filter(pk=wanted)
            if looks_like_uuid(wanted)
            else Run.objects.filter(external_id=wanted)
        )
        wanted_events = Q(pk__in=[])
        for key, project in runs.values_list("pk", "project"):
            about = Q(actor__in=[f"run:{key}", f"{SCRIBE_PREFIX}{key}"]) | Q(target=f"run:{key}")
            wanted_events |= Q(project=project) & about
        return rows.filter(wanted_events)


@admin.register(Project)
class ProjectAdmin(Looking):
    list_display = (
        "name", "audit", "slug", "trust", "on_overflow", "max_items", "max_tokens", "epoch", "ledger_number",
    )  # fmt: skip
    list_filter = ("trust", "on_overflow")
    search_fields = ("name", "slug")
    ordering = ("name", "pk")


@admin.register(Agent)
class AgentAdmin(Looking):
    list_display = ("name", "audit", "project", "created_at")
    list_filter = ("project",)
    list_select_related = ("project",)
    search_fields = ("name",)
    ordering = ("name", "pk")
    texts = ("charter",)


@admin.register(Run)
class RunAdmin(Looking):
    list_display = (
        "id", "audit", "agent", "project", "role", "status", "external_id", "started_at", "ended_at",
    )  # fmt: skip
    list_filter = ("status", "role", "project")
    list_select_related = ("project", "agent")
    search_fields = ("external_id", "agent__name")
    ordering = ("-started_at", "-pk")
    texts = ("summary", "agent__charter")


SOURCED = ("source_kind", RunFilter, "project")
"""The filters of rows with provenance."""


@admin.register(AgentMemory)
class MemoryAdmin(Looking):
    list_display = (
        "id", "audit", "beginning", "type", "importance", "agent", "trust_state", "approved_by", "source_kind",
        "source_identity", "project", "created_at",
    )  # fmt: skip
    list_filter = ("trust_state", *SOURCED, "type", "importance", ("retired_at", admin.EmptyFieldListFilter))
    list_select_related = ("project", "agent")
    # No index finds words in the texts of a hundred thousand rows; the project's Memory page has its own search.
    search_fields = ("agent__name", "source_identity__exact", "approved_by__exact")
    hint = "an agent; or who wrote or approved it, written whole"
    ordering = ("-pk",)
    excerpt = "content"
    texts = ("content", "retire_reason", "agent__charter")


@admin.register(Decision)
class DecisionAdmin(Looking):
    list_display = (
        "id", "audit", "title", "type", "status", "agent", "trust_state", "approved_by", "source_kind",
        "source_identity", "project", "created_at",
    )  # fmt: skip
    list_filter = ("trust_state", *SOURCED, "status", "type")
    list_select_related = ("project", "agent")
    search_fields = ("title", "agent__name")
    ordering = ("-pk",)
    texts = ("content", "rationale", "agent__charter")


@admin.register(DecisionInboxEntry)
class EntryAdmin(Looking):
    list_display = (
        "id", "audit", "title", "type", "status", "agent", "reviewed_by", "source_kind", "source_identity",
        "project", "created_at",
    )  # fmt: skip
    list_filter = ("status", *SOURCED, "type", "importance")
    list_select_related = ("project", "agent")
    search_fields = ("slug", "title", "agent__name")
    ordering = ("-pk",)
    texts = ("content", "rationale", "reason", "agent__charter")


@admin.register(SessionContext)
class SessionAdmin(Looking):
    list_display = (
        "session_id", "audit", "beginning", "source_kind", "source_identity", "project", "started_at",
        "ended_at",
    )  # fmt: skip
    list_filter = SOURCED
    list_select_related = ("project",)
    search_fields = ("session_id", "focus_area", "summary")
    ordering = ("-started_at", "-pk")
    excerpt = "focus_area"
    texts = ("focus_area", "active_issues", "summary", "serialized_state")


@admin.register(LedgerEvent)
class EventAdmin(Looking):
    list_display = ("number", "audit", "action", "target", "actor", "at", "project")
    list_filter = (EventRunFilter, "project")
    list_select_related = ("project",)
    search_fields = ("target", "actor", "hash")
    hint = "a row (memory:12), an actor or a hash, written whole"
    # In the direction of the index over both.
    ordering = ("-project_id", "-number")
    texts = ("before", "after", "reason")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Whole values, and in the projects there are: so an index finds them, however long the ledger is."""
        if not search_term:
            return queryset, False
        projects = list(Project.objects.values_list("pk", flat=True))
        named = Q(target=search_term) | Q(actor=search_term)
        return queryset.filter(Q(pk=search_term) | Q(project__in=projects) & named), False

    @admin.display(description="audit")
    def audit(self, row: LedgerEvent) -> SafeString:
        return link("Audit page", "audit-event", row.project.slug, row.number)


@admin.register(ContextSnapshot)
class SnapshotAdmin(Looking):
    list_display = ("id", "audit", "sha256", "project")
    list_filter = ("project",)
    list_select_related = ("project",)
    search_fields = ("sha256__startswith",)
    hint = "how a block's SHA-256 begins"
    ordering = ("-pk",)
    texts = ("block",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [*super().get_fields(request, obj), "told"]

    @admin.display(description="rows, each at the revision that was told")
    def told(self, row: ContextSnapshot) -> SafeString:
        rows = row.rows.order_by("layer", "pk")
        return format_html_join("", "{}<br>", ((_told(told, row.project.slug),) for told in rows))

    @admin.display(description="told to")
    def audit(self, row: ContextSnapshot) -> SafeString:
        receipts = reverse("admin:memory_contextreceipt_changelist")
        return format_html('<a href="{}?snapshot__id__exact={}">Receipts</a>', receipts, row.pk)


def _told(row: SnapshotRow, slug: str) -> SafeString:
    kind = "decision" if row.decision_id else "memory" if row.memory_id else "session"
    key = row.decision_id or row.memory_id or row.session_id
    words = f"layer {row.layer}: {kind} {key} at revision {row.revision}"
    return link(words, "trail", slug, kind, key)


@admin.register(ContextReceipt)
class ReceiptAdmin(Looking):
    list_display = (
        "id", "audit", "run", "at", "epoch", "decisions_only", "snapshot", "compile_error", "project",
    )  # fmt: skip
    list_filter = (
        ("compile_error", admin.EmptyFieldListFilter),
        "decisions_only",
        ReceiptRunFilter,
        "project",
    )
    list_select_related = ("project", "run__agent", "snapshot")
    ordering = ("-pk",)
    texts = ("snapshot__block", "run__summary", "run__agent__charter")

    @admin.display(description="audit")
    def audit(self, row: ContextReceipt) -> SafeString:
        return link("What was told", "receipt", row.project.slug, row.pk)


@admin.register(ImportedRecord)
class ImportedAdmin(Looking):
    list_display = ("id", "audit", "path", "line", "dated_at", "project")
    list_filter = (("replaces", admin.EmptyFieldListFilter), "project")
    list_select_related = ("project",)
    search_fields = ("path",)
    ordering = ("-pk",)

    @admin.display(description="became")
    def audit(self, row: ImportedRecord) -> SafeString:
        kinds = ("decision", "memory", "entry", "session")
        kind = next(kind for kind in kinds if getattr(row, f"{kind}_id") is not None)
        key = getattr(row, f"{kind}_id")
        return link(f"{kind} {key}", "trail", row.project.slug, kind, key)
