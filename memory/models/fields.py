"""Column types and look-ups of our own."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import lookups

if TYPE_CHECKING:
    _Text = models.TextField[list[str] | str, list[str]]
else:
    _Text = models.TextField


class TagsField(_Text):
    """Whole tags, kept as `,a,b,` so that one tag is found by `,a,` and never by a part of another (SPEC 3).

    A list of strings in Python. One column instead of a table: it changes with its row, compares in one statement and reads
    the same on SQLite and PostgreSQL.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.update(blank=True, default=list)
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        del kwargs["blank"], kwargs["default"]
        return name, path, args, kwargs

    def from_db_value(self, value: str | None, *_: object) -> list[str] | None:
        return None if value is None else split_tags(value)

    def to_python(self, value: Any) -> list[str]:
        return split_tags(value) if isinstance(value, str) else list(value or [])

    def get_prep_value(self, value: Any) -> Any:
        return join_tags(value) if isinstance(value, (list, tuple)) else value

    def value_to_string(self, obj: models.Model) -> str:
        return join_tags(self.value_from_object(obj))


def join_tags(tags: Iterable[str]) -> str:
    """The stored form of a list of tags."""
    joined = ",".join(tags)
    return f",{joined}," if joined else ""


def split_tags(stored: str) -> list[str]:
    """The list of a stored form."""
    return [tag for tag in stored.split(",") if tag]


def needle(tag: str) -> str:
    """What to look for with `contains` to find one whole tag."""
    return f",{tag},"


@models.CharField.register_lookup
@models.TextField.register_lookup
class ContainsInAnyCase(lookups.IContains):
    """`icontains` with every script's letter case on SQLite too, whose own LIKE knows that of ASCII alone."""

    def as_sqlite(self, compiler: Any, connection: Any) -> Any:
        if not isinstance(self.rhs, str) or self.rhs.isascii():
            return super().as_sql(compiler, connection)
        return lookups.IRegex(self.lhs, re.escape(self.rhs)).as_sql(compiler, connection)
