"""What there is in a project, in the order of an owner's day: one place for the names, addresses and counters of the pages."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from governance.pages.queues.counters import Counters
from governance.pages.views.access import Access
from governance.people.policies import Action


@dataclass(frozen=True, slots=True)
class Section:
    """One page of the navigation. `needs` is what its reader must be allowed to do; `counter` names a field of Counters."""

    name: str
    label: str
    needs: Action = Action.READ
    counter: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    sections: tuple[Section, ...]


GROUPS = (
    Group(
        "Decide",
        (
            Section("inbox", "Inbox", counter="inbox"),
            Section("legacy", "Legacy", counter="legacy"),
            Section("memory", "Memory", counter="cross_team"),
            Section("decisions", "Decisions"),
        ),
    ),
    Group(
        "Understand",
        (
            Section("context", "Context"),
            Section("runs", "Runs"),
            Section("session", "Session"),
            Section("audit", "Audit"),
        ),
    ),
    Group(
        "Manage",
        (
            Section("members", "Members"),
            Section("policy", "Policy"),
            Section("tokens", "Tokens"),
            Section("files", "Import / export", needs=Action.EXPORT),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Link:
    """A section as the template draws it."""

    name: str
    label: str
    url: str
    current: bool
    counter: str
    count: int


@dataclass(frozen=True, slots=True)
class Links:
    title: str
    links: tuple[Link, ...]


def navigation(access: Access, counters: Counters, current: str) -> tuple[Links, ...]:
    """The pages this reader may open, grouped; the first group is what stays visible on a small screen."""
    groups = (
        Links(
            group.title,
            tuple(
                _link(access, counters, section, current)
                for section in group.sections
                if section.needs in access.actions
            ),
        )
        for group in GROUPS
    )
    return tuple(group for group in groups if group.links)


def _link(access: Access, counters: Counters, section: Section, current: str) -> Link:
    url = reverse(f"governance:{section.name}", args=[access.project.slug])
    count = getattr(counters, section.counter) if section.counter else 0
    return Link(section.name, section.label, url, section.name == current, section.counter, count)
