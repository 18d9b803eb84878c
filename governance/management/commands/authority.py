"""`manage.py authority`: the table of SPEC 5, as the code decides it."""

from __future__ import annotations

from typing import Any

from django.core.management import BaseCommand

from governance.people.authority import rows_of_markdown


class Command(BaseCommand):
    help = "Print who may do what in a project, as a Markdown table made from the policies themselves."

    def handle(self, *args: Any, **options: Any) -> None:
        for line in rows_of_markdown():
            self.stdout.write(line)
