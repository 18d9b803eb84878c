"""How a view answers: the whole page, or for htmx exactly one fragment of it; the only file that knows htmx headers (DESIGN, Views)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect

from governance.pages.queues.counters import counters_of
from governance.pages.views.access import Access, PageRequest
from governance.pages.views.navigation import navigation


def is_partial(request: PageRequest) -> bool:
    """Whether a fragment is wanted. A boosted request and one that restores history want the whole page."""
    return bool(request.htmx) and not request.htmx.boosted and not request.htmx.history_restore_request


def page(
    request: PageRequest,
    access: Access,
    template: str,
    context: Mapping[str, Any],
    *,
    section: str,
    fragment: str = "",
    status: int = 200,
) -> HttpResponse:
    """A page of a project, or `template#fragment` when htmx asks and the page has one.

    `section` is the entry of the navigation that is marked. The context always holds `access`, `project` and `section`; a whole page
    also `counters` and `navigation`.
    """
    base = {"access": access, "project": access.project, "section": section, **context}
    if fragment and is_partial(request):
        return TemplateResponse(request, f"{template}#{fragment}", base, status=status)
    return TemplateResponse(request, template, {**framed(access, section), **base}, status=status)


def outcome(
    request: PageRequest,
    access: Access,
    template: str,
    context: Mapping[str, Any],
    *,
    said: str,
    status: int = 200,
) -> HttpResponse:
    """htmx's answer to a POST: a fragment, and out of band the counters and `said` for the live region.

    `template` names the fragment: `governance/inbox.html#entry`.
    """
    base = {"access": access, "project": access.project, **context}
    whole = {"fragment": template, "counters": counters_of(access.project), "said": said, **base}
    return TemplateResponse(request, "components/_outcome.html", whole, status=status)


def framed(access: Access, section: str) -> dict[str, Any]:
    """What base.html needs around a page of a project. One query."""
    counters = counters_of(access.project)
    return {"counters": counters, "navigation": navigation(access, counters, section)}


def go(request: PageRequest, url: str, said: str = "", level: int = messages.SUCCESS) -> HttpResponse:
    """Send the whole browser to `url` after a POST, with a sentence shown there."""
    if said:
        messages.add_message(request, level, said)
    return HttpResponseClientRedirect(url) if request.htmx else HttpResponseRedirect(url)


def return_address(request: PageRequest, fallback: str) -> str:
    """Where the form says it came from (`back`), if that is a place of ours; else `fallback`."""
    back = request.POST.get("back", "")
    ours = url_has_allowed_host_and_scheme(back, allowed_hosts=None) and back.startswith("/")
    return back if ours and not _forged(back) else fallback


def _forged(address: str) -> bool:
    return any(ord(char) < 0x20 for char in address) or address.startswith("//")
