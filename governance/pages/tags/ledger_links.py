"""From a name in the ledger to the page of what it names (SPEC 9: any row can be followed to its source)."""

from __future__ import annotations

from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from governance.pages.tags.ledger_text import shown
from memory.actors import SCRIBE_PREFIX
from memory.models import Project
from memory.values import looks_like_uuid

register = template.Library()

PAGES = {
    "decision": "decision",
    "memory": "memory-row",
    "entry": "inbox-entry",
    "session": "session-row",
    "run": "run",
}
"""The page that shows a row, by the row's kind."""

PLACES = {"project": "policy", "member": "members", "group": "members"}
"""The page on which something without a page of its own stands."""


@register.simple_tag
def row_url(project: Project, kind: str, row_id: Any) -> str:
    """The page of a row; the trail of a kind that has none."""
    if kind in PAGES:
        return reverse(f"governance:{PAGES[kind]}", args=[project.slug, row_id])
    return reverse("governance:trail", args=[project.slug, kind, row_id])


@register.simple_tag
def target_link(project: Project, target: str) -> SafeString:
    """`memory:12` as a link to that memory; a name without a page as it stands."""
    kind, _, row_id = target.partition(":")
    is_run = kind == "run" and looks_like_uuid(row_id)
    words = shown(f"run {row_id[:8]}" if is_run else target.replace(":", " ", 1))
    url = _target_url(project, kind, row_id)
    return format_html('<a href="{}">{}</a>', url, words) if url else format_html("<span>{}</span>", words)


def _target_url(project: Project, kind: str, row_id: str) -> str:
    if kind in PLACES:
        return reverse(f"governance:{PLACES[kind]}", args=[project.slug])
    is_row = looks_like_uuid(row_id) if kind == "run" else row_id.isascii() and row_id.isdigit()
    return row_url(project, kind, row_id) if is_row and kind in {*PAGES, "agent"} else ""


@register.simple_tag
def actor_link(project: Project, identity: str) -> SafeString:
    """Who did something: a run or its scribe as a link to the run, a person by name."""
    for prefix, word in (("run:", "run"), (SCRIBE_PREFIX, "scribe of run")):
        run_id = identity.removeprefix(prefix)
        if run_id != identity and looks_like_uuid(run_id):
            url = reverse("governance:run", args=[project.slug, run_id])
            return format_html('{} <a href="{}">{}</a>', word, url, run_id[:8])
    return format_html("<strong>{}</strong>", shown(identity))
