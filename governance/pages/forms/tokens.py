"""The form of a new personal token."""

from __future__ import annotations

from django import forms


class TokenForm(forms.Form):
    """What a token is for, and how long it is good for."""

    name = forms.CharField(
        max_length=100, label="What it is for", help_text="So that you know later which one to revoke."
    )
    days = forms.TypedChoiceField(
        choices=[("30", "30 days"), ("90", "90 days"), ("365", "a year"), ("", "until it is revoked")],
        coerce=int, empty_value=None, required=False, initial="90", label="Good for",
    )  # fmt: skip
