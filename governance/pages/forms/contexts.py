"""The form of the context page: whose context, and under which limits."""

from __future__ import annotations

from typing import Any

from django import forms

from governance.deciding.projects import MAX_ITEMS, MAX_TOKENS
from memory.compiling.compiler import Limits
from memory.models import Project

CHILD_RUN = "/child"
"""No agent can be called that: a name holds no slash."""
UNNAMED = "/unnamed"


class ContextForm(forms.Form):
    """What to compile. Limits may only be narrower than the policy; wider ones are the policy's own."""

    agent = forms.ChoiceField(required=False, label="For")
    trust = forms.ChoiceField(required=False)
    max_items = forms.IntegerField(min_value=0, max_value=MAX_ITEMS, required=False, label="Items, at most")
    max_tokens = forms.IntegerField(
        min_value=1, max_value=MAX_TOKENS, required=False, label="Tokens, at most"
    )

    def __init__(self, *args: Any, agents: list[tuple[int, str]], project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agents = {name: pk for pk, name in agents}
        fields: dict[str, Any] = self.fields
        fields["agent"].choices = [
            *((name, name) for name in self.agents),
            (CHILD_RUN, "a child run (decisions only)"),
            (UNNAMED, "an agent nobody has named yet"),
        ]
        fields["trust"].choices = [
            ("", f"as the policy says ({project.trust})"),
            ("strict", "strict: approved rows only"),
        ]
        fields["max_items"].widget.attrs["placeholder"] = project.max_items
        fields["max_tokens"].widget.attrs["placeholder"] = project.max_tokens

    @property
    def wanted(self) -> str:
        """The agent of a valid form, or one of the two that are none; the first agent when none was chosen."""
        return self.cleaned_data["agent"] or next(iter(self.agents), UNNAMED)

    @property
    def agent_id(self) -> int | None:
        return self.agents.get(self.wanted)

    def limits(self) -> Limits:
        """The limits of a valid form."""
        data = self.cleaned_data
        return Limits(data["max_items"], data["max_tokens"], strict=data["trust"] == "strict")
