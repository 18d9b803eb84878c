"""`manage.py demo` (SPEC 8.1): a project full of examples, and how to log in."""

from __future__ import annotations

import logging
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management import BaseCommand
from django.utils import timezone

from governance.demo.making import Demo, make_demo
from governance.demo.people import OWNER, PEOPLE, SERVICE, SUPERUSER
from memory.management.console import readable_refusals


class Command(BaseCommand):
    help = (
        "Make a demo project with people, agents, runs, memory, a full inbox and legacy rows, and print how to log in. Safe to repeat:"
        " a second run changes nothing and prints the log-in again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--address",
            default="http://127.0.0.1:8000",
            help="where the server will be, for the printed log-in",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with readable_refusals(), _without_staged_warnings():
            demo = make_demo(timezone.now())
        self.stderr.write(
            "Made the demo project." if demo.is_new else "The demo project is there already; nothing changed."
        )
        self.stdout.write("\n".join(login(demo, options["address"])))


@contextmanager
def _without_staged_warnings() -> Iterator[None]:
    """The story has a context that could not be compiled and an export that failed. In the log they would read like faults of
    this command; the demo's tests say that there are no others.
    """
    loggers = [
        logging.getLogger(name) for name in ("memory.compiling.receipts", "governance.deciding.scribe")
    ]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def login(demo: Demo, address: str) -> Iterator[str]:
    """What a person has to know, line by line."""
    yield ""
    yield f"  address   {address}/"
    yield f"  user      {OWNER.username}"
    yield f"  password  {demo.password or 'as it was printed, or as you changed it; a new one: manage.py changepassword ' + OWNER.username}"
    yield ""
    yield "  The same password opens:"
    for person in (*PEOPLE, *((SUPERUSER,) if demo.has_superuser else ())):
        yield f"  {person.username:<12}{person.does}"
    yield ""
    yield (
        f"  The orchestrator's token ({SERVICE.username}), shown once:"
        if demo.token
        else "  A token for the orchestrator:"
    )
    yield f"  {demo.token or f'manage.py issue_token {SERVICE.username}'}"
    yield ""
    yield ""
