"""The form of a project's name and policy."""

from __future__ import annotations

from typing import Any

from django import forms

from governance.deciding.projects import MAX_ITEMS, MAX_TOKENS
from memory.enums import Overflow, TrustPolicy
from memory.models import Project
from memory.values import MAX_SLUG, MAX_TITLE

POLICY = ("max_items", "max_tokens", "on_overflow", "trust")


class PolicyForm(forms.Form):
    """What an owner may say of a project (SPEC 4, Policy)."""

    name = forms.CharField(max_length=MAX_TITLE)
    slug = forms.CharField(
        max_length=MAX_SLUG, help_text="Part of every address. Old links stop working when it changes."
    )
    max_items = forms.IntegerField(
        min_value=0,
        max_value=MAX_ITEMS,
        label="Items, at most",
        help_text="Core context and learnings in one context.",
    )
    max_tokens = forms.IntegerField(
        min_value=1, max_value=MAX_TOKENS, label="Tokens, at most",
        help_text="Of the whole block; four characters count as one token.",
    )  # fmt: skip
    on_overflow = forms.ChoiceField(
        choices=[
            (Overflow.INCLUDE.value, "include it all the same, and say so"),
            (Overflow.FAIL.value, "fail: the run gets its charter and an error"),
        ],
        label="When decisions and core context alone are too much",
    )
    trust = forms.ChoiceField(
        choices=[
            (TrustPolicy.STANDARD.value, "standard: an agent's own pending memory informs that agent"),
            (TrustPolicy.STRICT.value, "strict: approved rows only"),
        ]
    )

    @classmethod
    def of(cls, project: Project) -> PolicyForm:
        """The form as the project stands."""
        return cls(initial={name: getattr(project, name) for name in cls.base_fields})

    def changes(self) -> dict[str, Any]:
        """The arguments of `governance.deciding.projects.update_project` for a valid form."""
        data = self.cleaned_data
        return {"name": data["name"], "slug": data["slug"], "policy": {name: data[name] for name in POLICY}}
