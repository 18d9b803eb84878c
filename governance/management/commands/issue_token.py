"""`manage.py issue_token` (SPEC 8.1): a personal token for a person or a service account, and nothing else on standard output."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone

from governance.models import User
from governance.people.credentials import issue_personal_token
from memory.management.console import readable_refusals

TOKEN_NAME = "manage.py issue_token"  # noqa: S105 - what the list of tokens calls it


class Command(BaseCommand):
    help = "Print a new personal token of USER. It is shown this once; only its digest is stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", metavar="USER", help="a person or service account")
        parser.add_argument(
            "--create", action="store_true", help="make the user first if there is none; it has no password"
        )
        parser.add_argument(
            "--days", metavar="N", type=int, help="valid for N days, 1 to 3650 (default: no end)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with transaction.atomic(), readable_refusals():
            user = self._user(options["username"], create=options["create"])
            issued = issue_personal_token(user, name=TOKEN_NAME, days=options["days"], now=timezone.now())
        self.stdout.write(issued.token)

    def _user(self, username: str, *, create: bool) -> User:
        user = User.objects.filter(username=username).first()
        if user is None:
            if not create:
                raise CommandError(f"There is no user {username!r}. Add --create to make one.")
            return self._new_user(username)
        if not user.is_active:
            raise CommandError(f"The user {username!r} is not active: a token would open nothing.")
        return user

    def _new_user(self, username: str) -> User:
        user = User(username=username)
        user.set_unusable_password()
        try:
            user.full_clean()
        except ValidationError as refused:
            raise CommandError(" ".join(refused.messages)) from refused
        user.save()
        self.stderr.write(f"Made the user {username!r} without a password.")
        return user
