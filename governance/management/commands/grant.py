"""`manage.py grant` (SPEC 8.1): gives a role in a project, for the first steps and for when nobody can sign in."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand
from django.utils import timezone

from governance.people.policies import Role, put_grant
from memory.ledger.changes import change
from memory.management.console import project_named, readable_refusals, shell_author


class Command(BaseCommand):
    help = (
        "Give USER a role in PROJECT, replacing the one they had. The ledger names the operating system's user who ran this, as"
        " 'command (name)': a command never acts as a person of the product."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", metavar="PROJECT", help="the project's slug or UUID")
        parser.add_argument(
            "username", metavar="USER", help="an existing user; issue_token --create makes one"
        )
        parser.add_argument(
            "role", metavar="ROLE", choices=[role.value for role in Role], help=f"one of: {', '.join(Role)}"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with readable_refusals():
            project = project_named(options["project"])
            with change(project.pk, shell_author(), timezone.now()) as opened:
                member = put_grant(opened, options["username"], Role(options["role"]))
        self.stderr.write(f"{member.name} is {member.role} in {project.slug}.")
