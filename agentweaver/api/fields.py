"""What a body may hold: exact types, the domain's own limits, no field nobody asked for (SPEC 7).

A field cleans with the function of `memory.values` that the verbs use too, so a limit is written once. Nothing is coerced: a
string is a string, a whole number is neither a boolean nor a float.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from django.db.models import TextChoices
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from agentweaver.api.parsing import as_object
from memory import values
from memory.errors import Invalid

S = TypeVar("S", bound="Body")

RESOLVED = frozenset(
    {
        "source_kind", "source_identity", "source_run", "source_run_id", "trust_state", "approved_by", "approved_at",
        "reviewed_by", "reviewed_at", "retired_by", "retired_at", "actor", "status", "created_at", "updated_at",
    }
)  # fmt: skip
"""Fields the server resolves: naming one in a body is refused, wherever the body does not offer it (SPEC 3, Trust)."""

_LONGEST_NAME_SHOWN = 60


class Body(serializers.Serializer[Any]):
    """A request body. Every wrong field is reported at once; a field it does not have is refused by name."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        errors = _unknown(data, self.fields)
        try:
            read: dict[str, Any] = super().to_internal_value(data)
        except serializers.ValidationError as wrong:
            errors = {**wrong.detail, **errors}  # type: ignore[dict-item]
        if errors:
            raise serializers.ValidationError(errors)
        return read


def _unknown(data: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    names = [name for name in data if name not in known] if isinstance(data, dict) else []
    return dict(_refused(name) for name in names)


def _refused(name: str) -> tuple[str, list[str]]:
    if name in RESOLVED:
        return name, ["The server resolves this; it may not be given."]
    if name.isprintable() and 0 < len(name) <= _LONGEST_NAME_SHOWN:
        return name, ["Unknown field."]
    return "body", ["A field with an unknown name."]


def read(body: type[S], request: Request) -> dict[str, Any]:
    """The validated fields of a request's body; those not given are absent. Raises Invalid, ParseError."""
    return validated(body(data=as_object(request.data)))


def validated(form: serializers.Serializer[Any]) -> dict[str, Any]:
    """The validated fields of a bound serializer. Raises Invalid with one list of texts per field."""
    if not form.is_valid():
        raise Invalid(flat(form.errors))
    fields: dict[str, Any] = form.validated_data
    return fields


def flat(errors: Any, prefix: str = "") -> dict[str, list[str]]:
    """Nested errors under dotted names: `policy.max_items`, `tags.2`."""
    found: dict[str, list[str]] = {}
    for name, wrong in errors.items():
        path = f"{prefix}{name}" if name != "non_field_errors" else prefix.rstrip(".") or "body"
        if isinstance(wrong, Mapping):
            found.update(flat(wrong, f"{path}."))
        else:
            found.setdefault(path, []).extend(str(text) for text in wrong)
    return found


def _cleaned(field: serializers.Field[Any, Any, Any, Any], clean: Callable[[Any], Any], value: Any) -> Any:
    try:
        return clean(value)
    except ValueError as wrong:
        raise serializers.ValidationError(str(wrong)) from wrong


class Text(serializers.CharField):
    """A string, kept as it came unless its cleaner trims it. `limit` is in characters."""

    default_error_messages = {"invalid": "This must be a string."}

    def __init__(
        self, limit: int = values.MAX_TEXT, clean: Callable[[str], str] | None = None, **kwargs: Any
    ) -> None:
        # The length stands in the schema; the cleaner below is what judges it, after trimming where that is the rule.
        super().__init__(trim_whitespace=False, allow_blank=True, max_length=limit, **kwargs)
        self.clean = clean or partial(values.checked_text, limit=limit)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        is_empty, data = self.validate_empty_values(data)
        return data if is_empty else self.to_internal_value(data)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        text: str = _cleaned(self, self.clean, data)
        return text


def required_text(value: str) -> str:
    """A content: kept as it came, and not blank."""
    return values.checked_text(value, required=True)


class OneOf(serializers.ChoiceField):
    """A word of a closed list."""

    default_error_messages = {"invalid": "This must be a string."}

    def __init__(self, listed: type[TextChoices], **kwargs: Any) -> None:
        super().__init__(choices=listed.choices, **kwargs)
        self.clean = values.one_of(listed)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(_cleaned(self, self.clean, data))


class Whole(serializers.IntegerField):
    """A whole number: never a string, a float or a boolean."""

    default_error_messages = {"invalid": "This must be a whole number."}

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return data


class Flag(serializers.BooleanField):
    """true or false, and nothing that could be taken for them."""

    default_error_messages = {"invalid": "This must be true or false."}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class Identifier(serializers.UUIDField):
    """A UUID written as a string."""

    default_error_messages = {"invalid": "This must be a UUID."}

    def to_internal_value(self, data: Any) -> uuid.UUID:
        if not isinstance(data, str) or not values.looks_like_uuid(data):
            self.fail("invalid")
        return uuid.UUID(data)


@extend_schema_field(
    {
        "oneOf": [
            {"type": "array", "items": {"type": "string"}, "maxItems": values.MAX_TAGS},
            {"type": "string", "description": "Comma-separated."},
        ]
    }
)
class Tags(serializers.Field[list[str], Any, list[str], Any]):
    """A list of strings or one comma-separated string (SPEC 7)."""

    default_error_messages = {"invalid": "This must be a list of strings or one comma-separated string."}

    def to_internal_value(self, data: Any) -> list[str]:
        if not isinstance(data, str) and not _strings(data):
            self.fail("invalid")
        tags: list[str] = _cleaned(self, values.clean_tags, data)
        return tags

    def to_representation(self, value: list[str]) -> list[str]:
        return list(value)


def _strings(data: Any) -> bool:
    return isinstance(data, list) and all(isinstance(part, str) for part in data)


@extend_schema_field(
    {
        "type": "array",
        "items": {"type": "string", "maxLength": values.MAX_ISSUE},
        "maxItems": values.MAX_ISSUES,
    }
)
class Issues(serializers.Field[list[str], Any, list[str], Any]):
    """A session's active issues: a list of strings."""

    default_error_messages = {"invalid": "This must be a list of strings."}

    def to_internal_value(self, data: Any) -> list[str]:
        if not _strings(data):
            self.fail("invalid")
        issues: list[str] = _cleaned(self, values.clean_issues, data)
        return issues

    def to_representation(self, value: list[str]) -> list[str]:
        return list(value)


Title = partial(Text, limit=values.MAX_TITLE, clean=values.clean_title)
Name = partial(Text, limit=values.MAX_NAME, clean=values.clean_name)
Slug = partial(Text, limit=values.MAX_SLUG, clean=values.clean_slug)
Content = partial(Text, clean=required_text)
Reason = partial(Text, limit=values.MAX_REASON, clean=values.clean_reason)
SessionId = partial(Text, limit=values.MAX_SESSION_ID, clean=values.clean_session_id)
Revision = partial(Whole, min_value=1, max_value=2**31 - 1, help_text="The revision that was read.")
