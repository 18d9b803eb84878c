"""Forms of runs: the filters of the list, and how a run is ended."""

from __future__ import annotations

from typing import Any

from django import forms

from governance.pages.forms.fields import Choices, TextField, choices_of
from governance.pages.queues.runs import RunFilters
from memory.enums import RunRole, RunStatus
from memory.runs import ENDED
from memory.values import MAX_EXTERNAL_ID, MAX_TEXT


class RunFilterForm(forms.Form):
    """What the address narrows the list to."""

    status = forms.ChoiceField(choices=choices_of(RunStatus, "any"), required=False)
    role = forms.ChoiceField(choices=choices_of(RunRole, "any"), required=False)
    agent = forms.ChoiceField(required=False)
    external_id = forms.CharField(max_length=MAX_EXTERNAL_ID, required=False, label="Orchestrator's id")

    def __init__(self, *args: Any, agents: list[tuple[int, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        named: Choices = [(str(pk), name) for pk, name in agents]
        self.fields["agent"].choices = [("", "any"), *named]  # type: ignore[attr-defined]

    def filters(self) -> RunFilters:
        """The filters of a valid form."""
        data = self.cleaned_data
        return RunFilters(
            status=RunStatus(data["status"]) if data["status"] else None,
            role=RunRole(data["role"]) if data["role"] else None,
            agent=int(data["agent"]) if data["agent"] else None,
            external_id=data["external_id"],
        )


class FinishForm(forms.Form):
    """How a running run is ended by hand."""

    status = forms.ChoiceField(choices=choices_of(word.value for word in reversed(ENDED)), label="As")
    summary = TextField(limit=MAX_TEXT, rows=3, required=False)
    end_session = forms.BooleanField(required=False, label="End the open session too")
