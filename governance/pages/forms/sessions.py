"""Forms of the session: a new one, and the open one changed."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from governance.pages.forms.fields import TextField, revision_field, with_line_ends_of
from memory.models import SessionContext
from memory.sessions import SessionFields
from memory.values import MAX_FOCUS, MAX_ISSUE, MAX_ISSUES, MAX_SESSION_ID, MAX_TEXT, clean_issues


class IssuesField(TextField):
    """A list of issues, one a line; blank lines are none."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(limit=MAX_ISSUES * (MAX_ISSUE + 2), rows=4, required=False, **kwargs)

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        lines = [line.strip() for line in super().clean(value).split("\n")]
        try:
            return clean_issues([line for line in lines if line])
        except ValueError as problem:
            raise ValidationError(str(problem)) from problem


class SessionForm(forms.Form):
    """What a session says. Runs add their outcome to the summary by themselves."""

    focus_area = TextField(limit=MAX_FOCUS, rows=2, required=False, label="Focus")
    active_issues = IssuesField(label="Active issues", help_text="One a line.")
    summary = TextField(limit=MAX_TEXT, rows=10, required=False)

    def fields_for(self, stored: SessionContext | None = None) -> SessionFields:
        """The fields of a valid form, for the verb; line ends stay as they are stored."""
        data = self.cleaned_data
        summary = with_line_ends_of(stored.summary, data["summary"]) if stored else data["summary"]
        return SessionFields(data["focus_area"], data["active_issues"], summary)


class StartForm(SessionForm):
    """A new session; the open one ends with it."""

    session_id = forms.CharField(
        max_length=MAX_SESSION_ID, label="Id", help_text="One line, unique in the project."
    )

    field_order = ("session_id", "focus_area", "active_issues", "summary")


class EditForm(SessionForm):
    """The open session, at the revision that was read."""

    revision = revision_field()
