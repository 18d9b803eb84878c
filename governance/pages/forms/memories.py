"""Forms of memories and imported rows: filters, an edited text, and many at once."""

from __future__ import annotations

from typing import Any

from django import forms

from governance.deciding.gate import Corrections
from governance.pages.forms.deciding import ManyForm
from governance.pages.forms.fields import Choices, TagsField, TextField, WordField, choices_of, revision_field
from governance.pages.queues.legacy import KINDS, LegacyFilters
from governance.pages.queues.memories import ALL, VIEWS, MemoryFilters
from memory.enums import Importance, MemoryType, TrustState
from memory.values import MAX_TEXT


class MemoryFilterForm(forms.Form):
    """What the address narrows the list to."""

    view = forms.ChoiceField(choices=choices_of(VIEWS), required=False, widget=forms.HiddenInput)
    q = forms.CharField(
        max_length=200, required=False, label="Text", widget=forms.TextInput(attrs={"data-search": ""})
    )
    agent = forms.ChoiceField(required=False)
    type = forms.ChoiceField(choices=choices_of(MemoryType, "any"), required=False)
    importance = forms.ChoiceField(choices=choices_of(Importance, "any"), required=False)
    trust = forms.ChoiceField(choices=choices_of(TrustState, "any"), required=False)
    tags = TagsField(label="Any of these tags")

    def __init__(self, *args: Any, agents: list[tuple[int, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        named: Choices = [(str(pk), name) for pk, name in agents]
        self.fields["agent"].choices = [("", "any"), *named]  # type: ignore[attr-defined]

    def filters(self) -> MemoryFilters:
        """The filters of a valid form."""
        data = self.cleaned_data
        return MemoryFilters(
            view=data["view"] or ALL,
            agent=int(data["agent"]) if data["agent"] else None,
            type=MemoryType(data["type"]) if data["type"] else None,
            importance=Importance(data["importance"]) if data["importance"] else None,
            trust=TrustState(data["trust"]) if data["trust"] else None,
            tags=data["tags"], text=data["q"],
        )  # fmt: skip


class EditMemoryForm(forms.Form):
    """A memory's text and what it is filed under."""

    type = forms.ChoiceField(choices=choices_of(MemoryType))
    importance = forms.ChoiceField(choices=choices_of(Importance))
    content = TextField(limit=MAX_TEXT, rows=10)
    tags = TagsField(help_text="Separated by commas. cross-team asks that other agents be told too.")
    revision = revision_field()


class LegacyFilterForm(forms.Form):
    """Which group of imported rows, and a word to look for in it."""

    kind = forms.ChoiceField(choices=choices_of(KINDS), widget=forms.HiddenInput)
    path = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)
    agent = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)
    q = forms.CharField(
        max_length=200, required=False, label="Text", widget=forms.TextInput(attrs={"data-search": ""})
    )

    def filters(self) -> LegacyFilters:
        """The filters of a valid form. A path that is there but empty means rows of no file."""
        data = self.cleaned_data
        path = data["path"] if "path" in self.data else None
        return LegacyFilters(kind=data["kind"], path=path, agent=data["agent"], text=data["q"])


class TrustedBulkForm(ManyForm):
    """Memories or decisions: all approved, with what they are filed under set alike, or all refused for one reason."""

    APPROVE, REFUSE = "approve", "refuse"
    NEEDS_REASON = (REFUSE,)

    do = forms.ChoiceField(choices=[(APPROVE, APPROVE), (REFUSE, REFUSE)])
    type = WordField()
    importance = WordField()
    tags = TagsField()

    def corrections(self, kind: str) -> Corrections:
        """What is set on every row; a field left empty leaves each row's own."""
        data = self.cleaned_data
        importance = data["importance"] if kind == "memory" else ""
        return Corrections(
            type=data["type"] or None, importance=importance or None, tags=data["tags"] or None
        )
