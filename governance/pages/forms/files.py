"""The forms of the file mirror: what to import, and that what was shown is taken."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from memory.mirror.reading.sources import DEFAULT_SOURCES, SOURCES

UPLOAD, WORKSPACE = "upload", "workspace"
LABELS = {
    "ledger": "The ledger, decisions.md",
    "inbox": "The inbox",
    "agents": "Agents: charters and histories",
    "session": "What the team works on now",
    "second_ledger": "A second ledger, decisions/decisions.md",
    "archives": "Archives",
    "backups": "Back-ups",
}


class ImportForm(forms.Form):
    """Where a team's files are, and which of their sources are wanted (SPEC 8).

    `kept` names an upload that the server still has; then no file is needed.
    """

    place = forms.ChoiceField(widget=forms.RadioSelect, label="Where the files are")
    file = forms.FileField(
        required=False, allow_empty_file=True, label="Zip file", help_text="Of the folder that holds .squad or .ai-team.",
        widget=forms.FileInput(attrs={"accept": ".zip,application/zip"}),
    )  # fmt: skip
    sources = forms.MultipleChoiceField(
        choices=[(name, LABELS[name]) for name in SOURCES],
        initial=[name for name in SOURCES if name in DEFAULT_SOURCES],
        widget=forms.CheckboxSelectMultiple,
        label="What to take",
        error_messages={"required": "Choose at least one."},
    )
    kept = forms.RegexField(r"^[0-9a-f]{64}\Z", required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, workspace: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        places = [(UPLOAD, "A zip from this computer")]
        if workspace:
            places.append((WORKSPACE, "The project's workspace folder on the server"))
        self.fields["place"].choices = places  # type: ignore[attr-defined]
        self.fields["place"].initial = UPLOAD

    @property
    def is_upload(self) -> bool:
        return bool(self.cleaned_data["place"] == UPLOAD)

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = self.cleaned_data
        nothing = not data.get("file") and not data.get("kept")
        if data.get("place") == UPLOAD and nothing and "file" not in self.errors:
            self.add_error("file", ValidationError("Choose a zip file."))
        return data


class ConfirmForm(ImportForm):
    """Take exactly what a dry run has shown: its fingerprint comes back."""

    fingerprint = forms.RegexField(r"^[0-9a-f]{64}\Z", widget=forms.HiddenInput)
