"""How values of the ledger are written on a page: text with its invisible characters, times in the reader's zone, addresses."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import conditional_escape, escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.timesince import timesince

from governance.deciding.flags import pieces

register = template.Library()

EXCERPT = 4_000
"""Characters of a text that stand open in a list; the rest is in the same page, one click away."""


@register.filter
def shown(text: str | None) -> SafeString:
    """Stored text, escaped, with every invisible character as a named chip."""
    parts = (_piece(piece.text, piece.unseen) for piece in pieces(text or ""))
    return mark_safe("".join(parts))  # noqa: S308 - every part is escaped below


def _piece(text: str, unseen: bool) -> str:
    return _chip(text) if unseen else escape(text)


def _chip(name: str) -> SafeString:
    return format_html('<span class="chip">{}</span>', name)


@register.filter
def named(markup: str) -> SafeString:
    """Markup that is safe already, with the invisible characters of the text in it as named chips; tags hold none of them."""
    html = str(conditional_escape(markup))
    parts = (_chip(piece.text) if piece.unseen else piece.text for piece in pieces(html))
    return mark_safe("".join(parts))  # noqa: S308 - escaped above, and so is every chip


@register.filter
def opening(text: str) -> str:
    """The part of a long text that stands open."""
    return text[:EXCERPT]


@register.filter
def rest(text: str) -> str:
    """What follows the opening; empty for most texts."""
    return text[EXCERPT:]


@register.filter
def when(moment: datetime | None) -> SafeString:
    """A time in the reader's zone, with the zone named."""
    if moment is None:
        return SafeString("")
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}">{} {}</time>',
        moment.isoformat(),
        local.strftime("%-d %b %Y, %H:%M"),
        zone_of(local),
    )


def zone_of(local: datetime) -> str:
    """`UTC`, `CET`; a zone without letters of its own is named by its place."""
    name = local.tzname() or ""
    return name if name and not name.startswith(("+", "-")) else timezone.get_current_timezone_name()


@register.filter
def age(moment: datetime | None) -> SafeString:
    """How long ago, in words, with the exact time for whoever points at it."""
    if moment is None:
        return SafeString("")
    local = timezone.localtime(moment)
    words = timesince(moment, depth=1)
    return format_html(
        '<time datetime="{}" title="{} {}">{} ago</time>',
        moment.isoformat(), local.strftime("%-d %b %Y, %H:%M"), zone_of(local), words,
    )  # fmt: skip


@register.simple_tag
def badge(word: str, kind: str = "", label: str = "") -> SafeString:
    """A state as a badge: colour, sign and the word itself."""
    return format_html(
        '<span class="badge badge--{}">{}</span>', kind or word, (label or word).replace("_", " ")
    )


@register.simple_tag
def trust_badge(row: Any) -> SafeString:
    """How far a memory or decision is trusted, and who said so."""
    if row.trust_state != "approved":
        return badge(row.trust_state)
    return format_html(
        '<span class="badge badge--approved" title="by {}">approved{}</span>',
        row.approved_by, " by scribe" if getattr(row, "approved_by_scribe", False) else "",
    )  # fmt: skip


@register.simple_tag
def source_badge(row: Any) -> SafeString:
    """Where a row came from: a person, a run or a file."""
    kind = {"human": "human", "run": "run", "legacy": "legacy"}[row.source_kind]
    label = {"human": f"by {row.source_identity}", "run": "by a run", "legacy": "imported"}[row.source_kind]
    return format_html(
        '<span class="badge badge--{}" title="{}">{}</span>', kind, row.source_identity, shown(label)
    )


@register.simple_tag
def tag_badges(tags: list[str]) -> SafeString:
    """The tags of a row."""
    return format_html_join(" ", '<span class="badge badge--tag">{}</span>', ((shown(tag),) for tag in tags))


@register.simple_tag
def options(words: Iterable[str], chosen: str = "") -> SafeString:
    """The options of a select over a closed list; a form per row of a long list would cost more than the row."""
    return format_html_join(
        "",
        '<option value="{}"{}>{}</option>',
        ((word, SafeString(" selected") if word == chosen else "", word.replace("_", " ")) for word in words),
    )


@register.filter
def joined(tags: list[str]) -> str:
    """Tags in one line, as they are typed."""
    return ", ".join(tags)
