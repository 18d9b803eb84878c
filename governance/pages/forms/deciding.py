"""Forms of every decision: approve with corrections, refuse with a reason, and both for many rows at once."""

from __future__ import annotations

from typing import Any

from django import forms

from governance.deciding.gate import Corrections
from governance.pages.forms.fields import (
    PickedField,
    ReasonField,
    TagsField,
    TextField,
    WordField,
    revision_field,
)
from memory.values import MAX_REASON


class CorrectionsForm(forms.Form):
    """What a reviewer sets right. A field that is not sent, or sent empty, stays as it is; tags sent empty are removed."""

    type = WordField()
    importance = WordField()
    tags = TagsField()

    def corrections(self) -> Corrections:
        data = self.cleaned_data
        return Corrections(
            type=data["type"] or None,
            importance=data["importance"] or None,
            tags=data["tags"] if "tags" in self.data else None,
        )


class ApproveForm(CorrectionsForm):
    """Approve or merge at the revision that was read."""

    revision = revision_field()


class RefuseForm(forms.Form):
    """Reject, retire or archive at the revision that was read, and why."""

    revision = revision_field()
    reason = ReasonField()


class ManyForm(forms.Form):
    """Many rows and what to do with them; a reason where that needs one."""

    NEEDS_REASON: tuple[str, ...] = ()

    item = PickedField()
    reason = TextField(limit=MAX_REASON, rows=2, required=False)

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if data.get("do") in self.NEEDS_REASON and not data.get("reason", "").strip():
            self.add_error("reason", "Say why.")
        return data
