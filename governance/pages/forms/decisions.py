"""Forms of decisions: filters, a new one, an edited one, and what takes its place."""

from __future__ import annotations

from typing import Any

from django import forms

from governance.pages.forms.fields import (
    Choices,
    ReasonField,
    TagsField,
    TextField,
    choices_of,
    revision_field,
)
from governance.pages.queues.decisions import DecisionFilters
from memory.enums import DecisionStatus, DecisionType, TrustState
from memory.values import MAX_NAME, MAX_TEXT, MAX_TITLE

ANY_STATUS = "all"


class DecisionFilterForm(forms.Form):
    """What the address narrows the list to."""

    status = forms.ChoiceField(
        choices=[*choices_of(DecisionStatus), (ANY_STATUS, ANY_STATUS)],
        required=False,
        widget=forms.HiddenInput,
    )
    q = forms.CharField(
        max_length=200, required=False, label="Text", widget=forms.TextInput(attrs={"data-search": ""})
    )
    type = forms.ChoiceField(choices=choices_of(DecisionType, "any"), required=False)
    trust = forms.ChoiceField(choices=choices_of(TrustState, "any"), required=False)
    agent = forms.ChoiceField(required=False)

    def __init__(self, *args: Any, agents: list[tuple[int, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        named: Choices = [(str(pk), name) for pk, name in agents]
        self.fields["agent"].choices = [("", "any"), *named]  # type: ignore[attr-defined]

    def filters(self) -> DecisionFilters:
        """The filters of a valid form."""
        data = self.cleaned_data
        status = data["status"] or DecisionStatus.ACTIVE
        return DecisionFilters(
            status=None if status == ANY_STATUS else DecisionStatus(status),
            type=DecisionType(data["type"]) if data["type"] else None,
            agent=int(data["agent"]) if data["agent"] else None,
            trust=TrustState(data["trust"]) if data["trust"] else None,
            text=data["q"],
        )


class DecisionForm(forms.Form):
    """The text of a decision."""

    type = forms.ChoiceField(
        choices=choices_of(DecisionType), help_text="Architectural and scope decisions reach every agent."
    )
    title = forms.CharField(max_length=MAX_TITLE)
    content = TextField(limit=MAX_TEXT, rows=12)
    rationale = TextField(limit=MAX_TEXT, rows=4, required=False)
    tags = TagsField(help_text="Separated by commas.")


class NewDecisionForm(DecisionForm):
    agent_name = forms.CharField(max_length=MAX_NAME, label="Agent", help_text="Who is shown as its author.")

    field_order = ("agent_name", "type", "title", "content", "rationale", "tags")


class EditDecisionForm(DecisionForm):
    revision = revision_field()


class SupersedeForm(forms.Form):
    """Which decision takes over, and why."""

    superseded_by = forms.IntegerField(error_messages={"required": "Choose the decision that takes over."})
    revision = revision_field()
    reason = ReasonField()
