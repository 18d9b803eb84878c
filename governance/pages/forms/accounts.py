"""Logging in: the name is checked before anybody counts an attempt under it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.core.validators import MaxLengthValidator


class LogInForm(AuthenticationForm):
    """Django's own. It writes the longest name into the page alone, and a longer one has no row it could be counted in."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name: Any = self.fields["username"]
        name.validators.append(MaxLengthValidator(name.max_length))

    def clean(self) -> dict[str, Any]:
        """A name that is none is not tried."""
        return self.cleaned_data if self.errors else super().clean()
