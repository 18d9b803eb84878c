"""Forms of members: a role given, a role taken away."""

from __future__ import annotations

from django import forms
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError

from governance.pages.forms.fields import choices_of
from governance.people.policies import Role

USER, GROUP = "user", "group"


class MemberForm(forms.Form):
    """Who is meant: a user or a group, by name."""

    kind = forms.ChoiceField(
        choices=[(USER, "a person or service account"), (GROUP, "a group")], label="Give it to"
    )
    name = forms.CharField(
        max_length=150, widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"})
    )

    @property
    def is_group(self) -> bool:
        return bool(self.cleaned_data["kind"] == GROUP)

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if self.cleaned_data.get("kind") == GROUP and not Group.objects.filter(name=name).exists():
            raise ValidationError(
                "There is no such group. Whoever runs this service makes groups in the admin."
            )
        return name

    def group(self) -> Group:
        """The group of a valid form."""
        return Group.objects.get(name=self.cleaned_data["name"])


class GrantForm(MemberForm):
    """A role for somebody, in place of the one they had."""

    role = forms.ChoiceField(choices=choices_of(role.value for role in Role))
