"""`manage.py export_memory` (SPEC 8 and 8.1): a project's files, written from the database."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand
from django.utils import timezone

from memory.management.console import project_named, readable_refusals
from memory.mirror.wording import one_line
from memory.mirror.writing.export import ExportReport, export_to_folder


class Command(BaseCommand):
    help = (
        "Write PROJECT's files below the folder PATH, from the database alone, and print their names. Files of an earlier export that "
        "no longer have rows disappear; files of others stay."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", metavar="PROJECT", help="the project's slug or UUID")
        parser.add_argument("path", metavar="PATH", type=Path, help="the folder, made when it is missing")

    def handle(self, *args: Any, **options: Any) -> None:
        with readable_refusals():
            project = project_named(options["project"])
            report = export_to_folder(project_id=project.pk, path=options["path"], now=timezone.now())
        self._tell(report)
        for file in report.files:
            self.stdout.write(file.path)

    def _tell(self, report: ExportReport) -> None:
        counts = ", ".join(f"{count} {name}" for name, count in report.counts.items())
        self.stderr.write(
            f"{counts}; {len(report.written)} files written, {len(report.removed)} removed. "
            f"The database was read at {report.exported_at:%Y-%m-%d %H:%M:%S} UTC, epoch {report.epoch}."
        )
        for kept in report.kept:
            where = "left as it is" if kept.copy == kept.path else f"kept as {kept.copy}"
            self.stderr.write(f"{one_line(kept.path)} was {kept.reason}: {one_line(where)}")
        for path in report.foreign:
            self.stderr.write(f"{one_line(path)} is not ours and was not touched")
