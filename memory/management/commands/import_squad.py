"""`manage.py import_squad` (SPEC 8 and 8.1): a team's files into the ledger, the report on standard output."""

from __future__ import annotations

import json
import sys
import zipfile
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone
from tqdm import tqdm

from memory.ledger.changes import founding
from memory.management.console import project_named, readable_refusals, shell_author
from memory.mirror.importing import Progress, import_tree, no_progress
from memory.mirror.reading.import_report import ImportReport, as_json
from memory.mirror.reading.sources import DEFAULT_SOURCES, SOURCES
from memory.mirror.reading.tree import SourceTree, read_folder, read_zip
from memory.mirror.wording import one_line
from memory.models import Project
from memory.values import Cleaner, clean_slug, looks_like_uuid


class Command(BaseCommand):
    help = (
        "Take a team's .squad or .ai-team folder, or a zip of one, into PROJECT. Everything comes in as legacy and waits for a person. "
        "Importing twice adds nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", metavar="PROJECT", help="the project's slug or UUID")
        parser.add_argument("path", metavar="PATH", type=Path, help="the folder, or the zip file")
        parser.add_argument("--dry-run", action="store_true", help="report what would come in, write nothing")
        parser.add_argument("--json", action="store_true", help="the whole report as JSON")
        parser.add_argument(
            "--sources", metavar="A,B", type=_sources, default=DEFAULT_SOURCES,
            help=f"of {', '.join(SOURCES)} (default: the first four), or `all`",
        )  # fmt: skip
        parser.add_argument(
            "--create", action="store_true", help="make the project PROJECT (a slug) if there is none"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        with readable_refusals(), _tree(options["path"]) as tree, transaction.atomic():
            project_id, is_new = self._project(options["project"], create=options["create"], now=now)
            with _bar() as progress:
                report = import_tree(
                    project_id=project_id, actor=shell_author(), tree=tree, sources=options["sources"],
                    dry_run=options["dry_run"], progress=progress, now=now,
                )  # fmt: skip
            # A dry run does not leave the project behind that it would have made.
            transaction.set_rollback(options["dry_run"])
        if is_new:
            self._tell_of_new(options["project"], dry_run=options["dry_run"])
        self.stdout.write(json.dumps(as_json(report), indent=2) if options["json"] else as_text(report))

    def _project(self, reference: str, *, create: bool, now: datetime) -> tuple[UUID, bool]:
        """The project's key, and whether it was made here."""
        if not create or Project.objects.named(reference).exists():
            return project_named(reference).pk, False
        with Cleaner() as clean:
            slug = clean("project", _new_slug, reference)
        project = Project(slug=slug, name=slug, created_at=now)
        with founding(project, shell_author(), now):
            return project.pk, True

    def _tell_of_new(self, slug: str, *, dry_run: bool) -> None:
        if dry_run:
            self.stderr.write(f"Without --dry-run the project {slug} would be made.")
            return
        self.stderr.write(
            f"Made the project {slug}. It has no owner: manage.py grant {slug} USER owner gives it one."
        )


def _sources(given: str) -> frozenset[str]:
    return frozenset(SOURCES) if given == "all" else frozenset(part.strip() for part in given.split(","))


def _new_slug(reference: str) -> str:
    if looks_like_uuid(reference):
        raise ValueError("There is no project with this UUID; a new project is named by its slug.")
    return clean_slug(reference)


@contextmanager
def _tree(path: Path) -> Iterator[SourceTree]:
    if path.is_dir():
        yield read_folder(path)
        return
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise CommandError(f"{path} is neither a folder nor a zip file.")
            yield read_zip(file)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error


@contextmanager
def _bar() -> Iterator[Progress]:
    """A bar on standard error when that is a terminal; nothing otherwise."""
    if not sys.stderr.isatty():
        yield no_progress
        return
    with tqdm(file=sys.stderr, leave=False, unit=" files") as bar:

        def show(stage: str, done: int, total: int) -> None:
            bar.unit = " files" if stage == "reading" else " records"
            bar.set_description(stage.capitalize(), refresh=False)
            bar.total, bar.n = total, done
            bar.refresh()

        yield show


def as_text(report: ImportReport) -> str:
    """The report for people: totals, each file, every skipped item with line and reason, what was not read."""
    lines = [
        f"{report.root}: found {report.found}, {'would take' if report.dry_run else 'took'} {report.taken}, skipped {report.skipped}",
        *(f"  {count} {kind}" for kind, count in report.taken_by_kind.items()),
        *(
            f"  not chosen: {count} in {source} (source_not_selected)"
            for source, count in report.not_selected.items()
        ),
    ]
    lines += _section(
        "Files", (f"{f.path}: found {f.found}, taken {f.taken}, skipped {f.skipped}" for f in report.files)
    )
    lines += _section(
        "Skipped",
        (f"{s.path}#L{s.line} {s.reason}: {_told(s.kind, s.words, s.detail)}" for s in report.skipped_items),
    )
    lines += _section("Not read", (f"{u.path}: {_told(u.reason, u.detail)}" for u in report.unread))
    lines += _section("Notes", (f"{n.path}#L{n.line} {_told(n.code, n.detail)}" for n in report.notes))
    return "\n".join(lines)


def _section(title: str, lines: Iterator[str]) -> list[str]:
    # Names and words come from foreign files: nothing in them may steer a terminal.
    shown = [f"  {one_line(line)}" for line in lines]
    return ["", title, *shown] if shown else []


def _told(*parts: str) -> str:
    return " · ".join(part for part in parts if part)
