"""The append-only ledger (SPEC 3, LedgerEvent). Only `memory.ledger.changes` writes it; triggers refuse update and delete."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC
from typing import Any

from django.db import models

from memory.models.project import Project


class LedgerEvent(models.Model):
    """One change. Its primary key is its own hash, so every column of the row is covered by the chain."""

    hash = models.CharField(max_length=64, primary_key=True)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="events")
    number = models.PositiveBigIntegerField()
    at = models.DateTimeField()
    action = models.CharField(max_length=40)
    actor = models.CharField(max_length=160)
    target = models.CharField(max_length=160)
    # Canonical JSON kept as text: a database that re-formats JSON would change bytes that are hashed.
    before = models.TextField()
    after = models.TextField()
    state = models.CharField(max_length=64, blank=True)
    """SHA-256 of the whole target row after the change, so that a row can be checked against the event that wrote it."""
    reason = models.TextField(blank=True)
    prev_hash = models.CharField(max_length=64)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["project", "number"], name="event_number_unique"),)
        indexes = (
            models.Index(fields=["project", "target", "number"], name="event_target"),
            models.Index(fields=["project", "actor", "number"], name="event_actor"),
            models.Index(fields=["project", "action", "number"], name="event_action"),
        )

    def __str__(self) -> str:
        return f"{self.number} {self.action} {self.target}"

    def body(self) -> dict[str, Any]:
        """What the hash covers: every column but the hash itself."""
        return {
            "project": str(self.project_id), "number": self.number,
            "at": self.at.astimezone(UTC).isoformat(timespec="microseconds"),
            "action": self.action, "actor": self.actor, "target": self.target,
            "before": self.before, "after": self.after, "state": self.state,
            "reason": self.reason, "prev_hash": self.prev_hash,
        }  # fmt: skip

    def computed_hash(self) -> str:
        return digest(self.body())


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()
