"""Forms of the audit pages: the filters of the ledger, and a checkpoint to check it against."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.utils import timezone

from governance.pages.forms.fields import Choices
from governance.pages.queues.audit import ACTIONS, EventFilters

_LONGEST = 200
_DATE = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")


class EventFilterForm(forms.Form):
    """What the address narrows the ledger to. Days are the reader's."""

    action = forms.ChoiceField(required=False)
    actor = forms.CharField(max_length=_LONGEST, required=False)
    target = forms.CharField(
        max_length=_LONGEST,
        required=False,
        label="Row",
        widget=forms.TextInput(attrs={"placeholder": "memory:12"}),
    )
    run = forms.UUIDField(required=False)
    since = forms.DateField(required=False, widget=_DATE, label="From")
    until = forms.DateField(required=False, widget=_DATE, label="To")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["action"].choices = _actions()  # type: ignore[attr-defined]

    def filters(self) -> EventFilters:
        """The filters of a valid form; `until` includes its day."""
        data = self.cleaned_data
        return EventFilters(
            data["action"],
            data["actor"],
            data["target"],
            data["run"],
            _midnight(data["since"]),
            _midnight(data["until"], 1),
        )

    def clean_until(self) -> date | None:
        until: date | None = self.cleaned_data["until"]
        if until == date.max:
            raise forms.ValidationError("This day is too far away.")
        return until


def _actions() -> list[tuple[str, str | Choices]]:
    """Every action, and before those of one kind all of them together."""
    kinds = sorted({action.partition(".")[0] for action in ACTIONS})
    grouped: list[tuple[str, str | Choices]] = [
        (
            kind,
            [(f"{kind}.", f"{kind}: all of these"), *((a, a) for a in ACTIONS if a.startswith(f"{kind}."))],
        )
        for kind in kinds
    ]
    return [("", "any"), *grouped]


def _midnight(day: date | None, later: int = 0) -> datetime | None:
    """The beginning of a day where the reader is, some days later."""
    return timezone.make_aware(datetime.combine(day + timedelta(days=later), time.min)) if day else None


class CheckpointForm(forms.Form):
    """Where the chain stood when somebody wrote it down."""

    number = forms.IntegerField(min_value=0, max_value=2**62, required=False, label="Event")
    hash = forms.RegexField(
        r"^[0-9a-f]{64}$",
        required=False,
        error_messages={"invalid": "64 hexadecimal digits."},
        label="Its hash",
    )

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if not self.errors and (data.get("number") is None) != (not data.get("hash")):
            raise forms.ValidationError("A checkpoint has both: the event's number and its hash.")
        return data
