"""Who is in the demo, and how they log in.

No password stands in this code. It is made from the installation's SECRET_KEY, so it is another one in every installation, is
stored nowhere but as a hash, and can be printed again. An installation whose key is no secret (short enough for Django's own check to
call it weak, such as the stand-in for debugging) gets a random password that is printed once.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.checks.security.base import SECRET_KEY_MIN_LENGTH

from governance.models import User


@dataclass(frozen=True, slots=True)
class Person:
    username: str
    first_name: str
    last_name: str
    does: str


OWNER = Person("mara", "Mara", "Lindqvist", "owner of both projects' decisions: start here")
PEOPLE = (
    OWNER,
    Person("tobias", "Tobias", "Renner", "second owner"),
    Person("ines", "Inês", "Duarte", "contributor: writes, does not decide"),
    Person("yusuf", "Yusuf", "Demir", "viewer: reads"),
    Person("ruth", "Ruth", "Abiola", "viewer through the group harbour-board"),
)
SUPERUSER = Person("demo-admin", "Demo", "Admin", "superuser: Django admin, may look and not decide")
SERVICE = Person("dispatch", "Dispatch", "service", "service account of the orchestrator")
GROUP = "harbour-board"
GROUP_MEMBER = "ruth"


def everyone(*, superuser: bool) -> tuple[Person, ...]:
    """All accounts of the demo; a superuser is among them only where that is harmless (see `making`)."""
    return (*PEOPLE, SERVICE, *((SUPERUSER,) if superuser else ()))


def printable_password() -> str | None:
    """The password this installation's key makes, or None when the key is no secret."""
    if len(settings.SECRET_KEY) < SECRET_KEY_MIN_LENGTH:
        return None
    digest = hmac.digest(settings.SECRET_KEY.encode(), b"agentweaver demo password", "sha256")
    return base64.b32encode(digest).decode().lower()[:16]


def make_people(password: str | None, *, superuser: bool) -> str:
    """Make the accounts; the password they log in with."""
    chosen = password or secrets.token_urlsafe(12)
    for person in everyone(superuser=superuser):
        names = {"first_name": person.first_name, "last_name": person.last_name}
        if person is SUPERUSER:
            User.objects.create_superuser(person.username, password=chosen, **names)
        else:
            User.objects.create_user(person.username, password=None if person is SERVICE else chosen, **names)
    group, _ = Group.objects.get_or_create(name=GROUP)
    group.user_set.add(User.objects.get(username=GROUP_MEMBER))
    return chosen
