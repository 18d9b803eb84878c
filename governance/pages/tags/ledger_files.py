"""How the file mirror is written on a page: reasons and sources in words, sizes, counts (SPEC 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any

from django import template

from governance.pages.forms.files import LABELS
from governance.pages.queues.files import WHY

register = template.Library()


@register.filter
def why(reason: str) -> str:
    """A reason of a report in words; `unreadable: Permission denied` keeps what follows."""
    code, _, rest = reason.partition(": ")
    return f"{WHY.get(code, cut_words(code))}{': ' if rest else ''}{rest}"


@register.filter
def cut_words(code: str) -> str:
    """A code as words: `source_not_selected` is `source not selected`."""
    return code.replace("_", " ")


@register.filter
def source_label(name: str) -> str:
    """What a source is."""
    return LABELS[name]


@register.filter
def plural_of(kind: str, count: int) -> str:
    """`3 entries`, `1 memory`."""
    if count == 1:
        return kind
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


@register.filter
def number_of(kinds: str, count: int) -> str:
    """The word for `count` of what a report calls by its plural: `session` of 1."""
    if count != 1:
        return kinds
    return f"{kinds[:-3]}y" if kinds.endswith("ies") else kinds.removesuffix("s")


@register.filter
def row_count(rows: Mapping[str, Any]) -> int:
    """Rows in a file of the mirror, of every kind. The manifest lies where others may write: what is no list counts nothing."""
    return sum(len(ids) for ids in rows.values() if isinstance(ids, Sized))


@register.filter
def size_of(file: Any) -> int:
    """Bytes of a file of the mirror, as it was written or as the manifest lists it."""
    return len(file.data) if hasattr(file, "data") else int(file.bytes)


@register.filter
def megabytes(size: int) -> str:
    """`32 MB`."""
    return f"{size // 1_000_000} MB"
