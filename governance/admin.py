"""People and what proves them, in the Django admin (SPEC 5 and 9).

Users are made, changed and shut out here. Roles are not given here: that is an owner's decision, made on a project's Members page, where the
ledger tells it. Credentials can be taken away, never made or read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from axes.models import AccessAttempt, AccessLog
from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString

from governance.models import (
    PersonalToken,
    ProjectGroupGrant,
    ProjectUserGrant,
    RunCredential,
    ScribeReport,
    User,
)
from governance.people import policies
from governance.people.credentials import revoke_personal_token
from governance.people.policies import Role
from governance.people.revoking import revoke_as_superuser
from memory.actors import Human
from memory.admin import Looking, ReceiptRunFilter, link
from memory.models import Project

if TYPE_CHECKING:
    UserBase = DjangoUserAdmin[User]
    GroupBase = admin.ModelAdmin[Group]
else:
    UserBase = DjangoUserAdmin
    GroupBase = admin.ModelAdmin


@admin.register(User)
class UserAdmin(UserBase):
    """People and service accounts. They are shut out, never deleted: their names stand in the ledger for ever.

    For the same reason a name cannot be changed, nor given to somebody else.
    """

    list_display = ("username", "first_name", "last_name", "email", "is_active", "is_superuser", "last_login")
    list_filter = ("is_active", "is_superuser", "groups")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        (
            "Access",
            {
                "fields": ("is_active", "is_superuser", "groups"),
                "description": "A superuser looks at every project and decides in none. Roles in projects are given on their"
                " Members pages, to a user or to a group; whoever joins a group has its roles.",
            },
        ),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    filter_horizontal = ()

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("last_login", "date_joined", *(("username",) if obj else ()))

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "is_superuser":
            kwargs["help_text"] = "Opens this admin and looks at every project."
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        kwargs["widget"] = forms.CheckboxSelectMultiple
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        owned = list(policies.owned_projects(obj.username)) if change else []
        super().save_model(request, obj, form, change)
        self._warn(request, [project for project in owned if not policies.has_owner(project)])

    def _warn(self, request: HttpRequest, orphans: Iterable[Project]) -> None:
        """Shutting somebody out must work at once, also when nobody is left to decide; but not in silence."""
        if names := ", ".join(project.name for project in orphans):
            self.message_user(
                request,
                f"Nobody active can decide any more in: {names}. Give the role of owner to somebody with"
                " manage.py grant.",
                messages.WARNING,
            )


admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(GroupBase):
    """Groups of people. The name is how the ledger knows a group, so it stays; who is in it is said on the user's page."""

    list_display = ("name",)
    search_fields = ("name",)
    ordering = ("name",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return ["name", "people", "roles"] if obj else ["name"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return ["name", "people", "roles"] if obj else []

    @admin.display(description="people")
    def people(self, group: Group) -> str:
        names = User.objects.filter(groups=group).order_by("username").values_list("username", flat=True)
        return ", ".join(names) or "nobody"

    @admin.display(description="roles")
    def roles(self, group: Group) -> str:
        grants = ProjectGroupGrant.objects.filter(group=group).order_by("content_object__name")
        told = grants.values_list("permission__codename", "content_object__name")
        return ", ".join(f"{role} of {project}" for role, project in told) or "none"


# Grants


class RoleFilter(admin.SimpleListFilter):
    title = parameter_name = "role"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(role.value, role.value) for role in Role]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(permission__codename=self.value()) if self.value() else queryset


class GrantAdmin(Looking):
    """Who has which role. The Members page of the project is where it changes."""

    holder = ""
    hidden = ("permission",)
    list_filter = (RoleFilter, ("content_object", admin.RelatedOnlyFieldListFilter))
    ordering = ("content_object__name", "pk")

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        return ["id", self.holder, "role", "content_object", "audit"]

    def get_list_select_related(self, request: HttpRequest) -> tuple[str, ...]:
        return (self.holder, "permission", "content_object")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [*super().get_fields(request, obj), "role"]

    @admin.display(description="role", ordering="permission__codename")
    def role(self, grant: Any) -> str:
        return str(grant.permission.codename)

    @admin.display(description="where it changes")
    def audit(self, grant: Any) -> SafeString:
        return link("Members", "members", grant.content_object.slug)


@admin.register(ProjectUserGrant)
class UserGrantAdmin(GrantAdmin):
    holder = "user"
    search_fields = ("user__username", "content_object__name")


@admin.register(ProjectGroupGrant)
class GroupGrantAdmin(GrantAdmin):
    holder = "group"
    search_fields = ("group__name", "content_object__name")


# Credentials


@admin.register(PersonalToken)
class PersonalTokenAdmin(Looking):
    """Tokens of people and service accounts: their digests are nobody's business, and they can only be revoked."""

    list_display = ("prefix", "user", "name", "created_at", "expires_at", "last_used_at", "revoked_at")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    list_select_related = ("user",)
    search_fields = ("prefix__startswith", "user__username", "name")
    ordering = ("-pk",)
    hidden = ("digest",)
    leads = False
    actions = ("revoke",)

    @admin.action(description="Revoke the chosen tokens")
    def revoke(self, request: HttpRequest, queryset: QuerySet[PersonalToken]) -> None:
        chosen = list(queryset.filter(revoked_at=None).select_related("user"))
        for token in chosen:
            revoke_personal_token(token.user, token.pk, timezone.now())
            self.log_change(request, token, "Revoked.")
        self.message_user(request, f"{len(chosen)} revoked.")


@admin.register(RunCredential)
class RunCredentialAdmin(Looking):
    """Credentials of runs: they die with their run, or here when one has leaked. The ledger tells the revocation."""

    list_display = ("prefix", "run", "created_at", "expires_at", "last_used_at", "revoked_at", "audit")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter), ReceiptRunFilter, "run__project")
    list_select_related = ("run__agent", "run__project")
    search_fields = ("prefix__startswith",)
    ordering = ("-pk",)
    hidden = ("digest",)
    texts = ("run__summary", "run__agent__charter")
    actions = ("revoke",)

    @admin.display(description="run")
    def audit(self, row: RunCredential) -> SafeString:
        return link("The run", "run", row.run.project.slug, row.run_id)

    @admin.action(description="Revoke the chosen credentials")
    def revoke(self, request: HttpRequest, queryset: QuerySet[RunCredential]) -> None:
        actor, chosen = Human(request.user.get_username()), queryset.filter(revoked_at=None)
        runs = list(chosen.values_list("run__project_id", "run_id"))
        for project_id, run_id in runs:
            revoke_as_superuser(project_id=project_id, actor=actor, run_id=run_id, now=timezone.now())
        self.message_user(request, f"{len(runs)} revoked.")


@admin.register(ScribeReport)
class ScribeReportAdmin(Looking):
    list_display = ("run", "updated_at", "failed", "exported_files", "audit")
    list_filter = (ReceiptRunFilter, "run__project")
    list_select_related = ("run__agent", "run__project")
    ordering = ("-updated_at", "-pk")
    texts = ("promoted", "waiting", "session", "run__summary", "run__agent__charter")

    @admin.display(description="failed", boolean=True)
    def failed(self, row: ScribeReport) -> bool:
        return not row.has_failed

    @admin.display(description="run")
    def audit(self, row: ScribeReport) -> SafeString:
        return link("The run", "run", row.run.project.slug, row.run_id)


# Log-ins, and what was done in this admin


@admin.register(AccessAttempt)
class AttemptAdmin(Looking):
    """Failed log-ins. Deleting one lets that person try again at once."""

    list_display = ("attempt_time", "username", "ip_address", "path_info", "failures_since_start")
    list_filter = ("attempt_time",)
    search_fields = ("username", "ip_address")
    ordering = ("-pk",)
    leads = False
    actions = ()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_view_permission(request)


@admin.register(AccessLog)
class LogInAdmin(Looking):
    list_display = ("attempt_time", "username", "ip_address", "user_agent", "logout_time")
    list_filter = ("attempt_time",)
    search_fields = ("username", "ip_address")
    ordering = ("-pk",)
    leads = False


@admin.register(LogEntry)
class AdminLogAdmin(Looking):
    list_display = ("action_time", "user", "content_type", "object_repr", "action_flag", "change_message")
    list_select_related = ("user", "content_type")
    list_filter = ("action_flag", "action_time")
    search_fields = ("user__username", "object_repr")
    ordering = ("-pk",)
    leads = False
