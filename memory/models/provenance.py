"""The columns and constraints that several tables share: where a row came from and how far it is trusted (SPEC 3)."""

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from memory.actors import Provenance
from memory.enums import SourceKind, TrustState


def listed(name: str, field: str, choices: type[models.TextChoices]) -> models.CheckConstraint:
    """A closed list, checked by the database."""
    return models.CheckConstraint(
        condition=Q(**{f"{field}__in": choices.values}), name=f"{name}_{field}_listed"
    )


class Sourced(models.Model):
    """Provenance. The database default is `legacy`: code that forgets it fails closed."""

    source_kind = models.CharField(
        max_length=10,
        choices=SourceKind,
        default=SourceKind.LEGACY,
        db_default=SourceKind.LEGACY,
        editable=False,
    )
    source_identity = models.TextField(blank=True, editable=False)
    source_run = models.ForeignKey(
        "memory.Run", null=True, blank=True, editable=False, on_delete=models.PROTECT, related_name="+"
    )

    class Meta:
        abstract = True
        constraints: ClassVar[tuple[models.BaseConstraint, ...]] = (
            listed("%(class)s", "source_kind", SourceKind),
            models.CheckConstraint(
                condition=Q(source_kind=SourceKind.RUN, source_run__isnull=False)
                | (~Q(source_kind=SourceKind.RUN) & Q(source_run__isnull=True)),
                name="%(class)s_run_source_has_run",
            ),
        )


class Trusted(models.Model):
    """Trust. Approved means exactly that both stamps are set."""

    trust_state = models.CharField(
        max_length=10,
        choices=TrustState,
        default=TrustState.LEGACY,
        db_default=TrustState.LEGACY,
        editable=False,
    )
    approved_by = models.CharField(max_length=160, blank=True, db_default="", editable=False)
    approved_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        abstract = True
        constraints: ClassVar[tuple[models.BaseConstraint, ...]] = (
            listed("%(class)s", "trust_state", TrustState),
            models.CheckConstraint(
                condition=(Q(trust_state=TrustState.APPROVED, approved_at__isnull=False) & ~Q(approved_by=""))
                | (~Q(trust_state=TrustState.APPROVED) & Q(approved_by="", approved_at__isnull=True)),
                name="%(class)s_approved_has_both_stamps",
            ),
        )


def source_columns(source: Provenance) -> dict[str, Any]:
    """The provenance of a new row as column values."""
    return {"source_kind": source.kind, "source_identity": source.identity, "source_run_id": source.run_id}
