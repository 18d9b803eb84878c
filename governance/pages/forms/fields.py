"""Fields that several forms share, and how a verb's refusal comes back to the form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import TextChoices

from governance.deciding.bulk import MOST, Picked
from memory.errors import Invalid
from memory.values import MAX_REASON, MAX_TAG, MAX_TAGS, checked_text, clean_tags

Choices = list[tuple[str, str]]


def choices_of(words: type[TextChoices] | Iterable[str], empty: str | None = None) -> Choices:
    """A closed list as options, with one that chooses nothing when `empty` names it."""
    values = words.values if isinstance(words, type) else list(words)
    options = [(value, value.replace("_", " ")) for value in values]
    return options if empty is None else [("", empty), *options]


class WordField(forms.CharField):
    """One word of a closed list, handed on as text: the verb knows the list and says what is wrong."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=40, required=False, **kwargs)


class TagsField(forms.CharField):
    """Tags in one line, split at commas."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, max_length=MAX_TAGS * (MAX_TAG + 2), **kwargs)

    def clean(self, value: Any) -> list[str]:
        try:
            return clean_tags(super().clean(value))
        except ValueError as problem:
            raise ValidationError(str(problem)) from problem


class TextField(forms.CharField):
    """A text as it was typed: nothing trimmed; the line ends a browser makes are taken back to what people type."""

    def __init__(self, *, limit: int, rows: int = 4, **kwargs: Any) -> None:
        self.limit = limit
        super().__init__(strip=False, widget=forms.Textarea(attrs={"rows": rows}), **kwargs)

    def clean(self, value: Any) -> str:
        text: str = super().clean(value).replace("\r\n", "\n")
        try:
            return checked_text(text, self.limit, required=self.required)
        except ValueError as problem:
            raise ValidationError(str(problem)) from problem


class ReasonField(TextField):
    """Why; required."""

    def __init__(self) -> None:
        super().__init__(limit=MAX_REASON, rows=2, label="Reason", error_messages={"required": "Say why."})

    def clean(self, value: Any) -> str:
        return super().clean(value if value and value.strip() else "")


class PickedField(forms.Field):
    """The rows a reader picked, each with the revision they saw."""

    widget = forms.MultipleHiddenInput

    def clean(self, value: Any) -> list[Picked]:
        if not value:
            raise ValidationError("Pick at least one row.")
        if len(value) > MOST:
            raise ValidationError(f"At most {MOST} rows at once; these are {len(value)}.")
        try:
            return [Picked.parse(item) for item in dict.fromkeys(value)]
        except ValueError as problem:
            raise ValidationError("One of the rows cannot be read. Reload the page.") from problem


def revision_field() -> forms.IntegerField:
    """The revision that was on the screen; every decision names it (SPEC 6)."""
    return forms.IntegerField(min_value=1, widget=forms.HiddenInput)


def add_refusal(form: forms.Form, refusal: Invalid) -> None:
    """Put what a verb found wrong beside the fields it names."""
    for field, texts in refusal.errors.items():
        for text in texts:
            form.add_error(field if field in form.fields else None, text)


def with_line_ends_of(stored: str, typed: str) -> str:
    """`typed` with the line ends the stored text has, so that saving an untouched form changes nothing."""
    return typed.replace("\n", "\r\n") if "\r\n" in stored and "\r\n" not in typed else typed
