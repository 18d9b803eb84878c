"""Forms of the inbox: its filters, and what is done with many entries at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms

from governance.pages.forms.deciding import ManyForm
from governance.pages.forms.fields import Choices, choices_of
from governance.pages.queues.inbox import InboxFilters
from memory.enums import EntryStatus, EntryType

AGES: dict[str, tuple[str, timedelta | None, timedelta | None]] = {
    "day": ("the last day", None, timedelta(days=1)),
    "week": ("the last week", None, timedelta(days=7)),
    "older-day": ("older than a day", timedelta(days=1), None),
    "older-week": ("older than a week", timedelta(days=7), None),
    "older-month": ("older than 30 days", timedelta(days=30), None),
}


class InboxFilterForm(forms.Form):
    """What the address narrows the list to. Anything that cannot be is an error beside its field, and an empty list."""

    status = forms.ChoiceField(choices=choices_of(EntryStatus), required=False, widget=forms.HiddenInput)
    q = forms.CharField(
        max_length=200, required=False, label="Text", widget=forms.TextInput(attrs={"data-search": ""})
    )
    type = forms.ChoiceField(choices=choices_of(EntryType, "any"), required=False)
    agent = forms.ChoiceField(required=False)
    age = forms.ChoiceField(
        choices=[("", "any"), *((key, label) for key, (label, _, _) in AGES.items())], required=False
    )
    run = forms.UUIDField(required=False, label="Run", widget=forms.TextInput(attrs={"size": 12}))

    def __init__(self, *args: Any, agents: list[tuple[int, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        named: Choices = [(str(pk), name) for pk, name in agents]
        self.fields["agent"].choices = [("", "any"), *named]  # type: ignore[attr-defined]

    def filters(self) -> InboxFilters:
        """The filters of a valid form."""
        data = self.cleaned_data
        _, older, newer = AGES.get(data["age"], ("", None, None))
        return InboxFilters(
            status=EntryStatus(data["status"] or EntryStatus.PENDING),
            type=EntryType(data["type"]) if data["type"] else None,
            agent=int(data["agent"]) if data["agent"] else None,
            run=data["run"], older=older, newer=newer, text=data["q"],
        )  # fmt: skip


class BulkForm(ManyForm):
    """Entries, all merged as they stand or all rejected for one reason."""

    MERGE, REJECT = "merge", "reject"
    NEEDS_REASON = (REJECT,)

    do = forms.ChoiceField(choices=[(MERGE, MERGE), (REJECT, REJECT)])
