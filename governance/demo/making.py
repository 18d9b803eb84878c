"""Makes the demo: the accounts, then every step of both projects in the order of their times.

All of it is one transaction, so there is the whole demo or none of it: a process that was killed leaves nothing to tidy up, and
a second run finds everything there and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import transaction

from governance.deciding.projects import create_project
from governance.demo import inbox, library, opening, weeks
from governance.demo.people import GROUP, OWNER, SERVICE, everyone, make_people, printable_password
from governance.demo.stage import Stage, Step, span
from governance.models import User
from governance.people.credentials import issue_personal_token, revoke_personal_token
from memory.actors import Human
from memory.errors import Conflict
from memory.models import LedgerEvent, Project


@dataclass(frozen=True, slots=True)
class Story:
    """A project of the demo, and what happened in it."""

    slug: str
    name: str
    owner: str
    opened: str
    policy: dict[str, str]
    steps: Sequence[Step]


STORIES = (
    Story(
        "kaimauer", "Kaimauer: berth planner", OWNER.username, "34d 7h", {},
        (*opening.STEPS, *weeks.STEPS, *inbox.STEPS),
    ),
    Story(
        "kaimauer-handbook", "Kaimauer: handbook", OWNER.username, "12d 1h",
        {"trust": "strict", "on_overflow": "fail"}, library.STEPS,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Demo:
    """What a person needs to go in. `password` is None when it cannot be printed again, `token` on every run but the first."""

    is_new: bool
    password: str | None
    token: str | None
    has_superuser: bool


def make_demo(now: datetime) -> Demo:
    """Make the demo if it is not there; how to log in. Raises Conflict when a name it needs belongs to somebody else."""
    with transaction.atomic():
        if all(_is_made(story) for story in STORIES):
            return _found()
        _require_free_names()
        password = make_people(printable_password(), superuser=settings.DEBUG)
        token = _tokens(now)
        for story in STORIES:
            _play(story, now)
    return Demo(True, password, token, settings.DEBUG)


def _is_made(story: Story) -> bool:
    """The project's own first event says who made it: a project of somebody else's under this slug is not the demo."""
    first = LedgerEvent.objects.filter(project__slug=story.slug, number=1)
    return first.filter(actor=story.owner, action="project.create").exists()


def _found() -> Demo:
    password = printable_password()
    owner = User.objects.filter(username=OWNER.username).first()
    opens = password is not None and owner is not None and owner.check_password(password)
    return Demo(False, password if opens else None, None, _superuser_exists())


def _superuser_exists() -> bool:
    return User.objects.filter(username__in=_names(superuser=True), is_superuser=True).exists()


def _names(*, superuser: bool) -> list[str]:
    return [person.username for person in everyone(superuser=superuser)]


def _require_free_names() -> None:
    """The demo never takes over an account, a group or a project that was there before it."""
    taken = list(
        User.objects.filter(username__in=_names(superuser=settings.DEBUG)).values_list("username", flat=True)
    )
    if taken:
        raise Conflict(f"The demo needs these user names, and they are taken: {', '.join(sorted(taken))}.")
    slugs = Project.objects.filter(slug__in=[story.slug for story in STORIES]).values_list("slug", flat=True)
    if slugs:
        raise Conflict(f"The demo needs these project slugs, and they are taken: {', '.join(sorted(slugs))}.")
    if Group.objects.filter(name=GROUP).exists():
        raise Conflict(f"The demo needs the group '{GROUP}', and that is taken.")


def _tokens(now: datetime) -> str:
    """A token for the orchestrator that works, and two of the owner's that do not any more: expired, and revoked."""
    owner = User.objects.get(username=OWNER.username)
    issue_personal_token(owner, name="laptop, spring", days=14, now=now - span("30d"))
    lost = issue_personal_token(owner, name="lost phone", now=now - span("20d")).credential
    revoke_personal_token(owner, lost.pk, now - span("6d"))
    service = User.objects.get(username=SERVICE.username)
    return issue_personal_token(service, name="orchestrator", days=90, now=now).token


def _play(story: Story, now: datetime) -> None:
    project = create_project(
        actor=Human(story.owner), name=story.name, slug=story.slug, policy=story.policy,
        now=now - span(story.opened),
    )  # fmt: skip
    stage = Stage(project.pk)
    for step in sorted(story.steps, key=lambda step: span(step.ago), reverse=True):
        step.play(stage, now - span(step.ago))
