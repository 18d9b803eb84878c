"""What the commands of SPEC 8.1 share: who runs them, which project is meant, and how a refusal reads on a terminal."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management import CommandError

from memory.actors import Shell
from memory.errors import DomainError
from memory.models import Project


def shell_author() -> Shell:
    """Who runs this process, as the operating system knows it; the environment, which anyone can set, is not asked."""
    user = os.geteuid()
    try:
        return Shell(pwd.getpwuid(user).pw_name)
    except KeyError:
        return Shell(f"uid {user}")


def project_named(reference: str) -> Project:
    """The project with this UUID or slug. Raises CommandError."""
    project = Project.objects.named(reference).first()
    if project is None:
        raise CommandError(f"There is no project {reference!r}. Give its slug or its UUID.")
    return project


@contextmanager
def readable_refusals() -> Iterator[None]:
    """Let a refusal of the product end the command with its own words and exit code 1 instead of a traceback."""
    try:
        yield
    except DomainError as refused:
        raise CommandError(f"{refused.detail} ({refused.code})") from refused
    except UnicodeEncodeError as garbled:
        raise CommandError("An argument is not valid text.") from garbled
