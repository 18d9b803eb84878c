"""`manage.py verify_ledger` (SPEC 8.1): checks every chain, and against checkpoints kept elsewhere."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError

from memory.ledger.verification import Broken, Checkpoint, Verification, verify
from memory.management.console import project_named, readable_refusals
from memory.models import Project
from memory.values import looks_like_uuid

FORMAT = "agentweaver.ledger-checkpoints.v1"


class Command(BaseCommand):
    help = (
        "Check the ledger of PROJECT, or of every project: each event, the chain, every row it tells of, and what runs were told."
        " Prints the first thing that does not fit, one line for each project, and exits with 1; prints nothing when all fits."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", metavar="PROJECT", nargs="?", help="the project's slug or UUID")
        parser.add_argument(
            "--checkpoint", metavar="FILE", help="when all fits, write where each chain stands; - is stdout"
        )
        parser.add_argument("--against", metavar="FILE", help="also check against an earlier checkpoint file")

    def handle(self, *args: Any, **options: Any) -> None:
        anchors = read_checkpoints(options["against"]) if options["against"] else {}
        projects = self._projects(options["project"])
        if options["against"] and options["project"] and str(projects[0].pk) not in anchors:
            raise CommandError(f"{options['against']} has no checkpoint of {projects[0].slug}.")
        if gone := _gone(anchors, projects, everything=options["project"] is None):
            for project in gone:
                self.stdout.write(
                    f"project:{project}: the checkpoint names it, the database does not know it"
                )
        found = {project: self._check(project, anchors) for project in projects}
        broken = [project.slug for project, result in found.items() if not result.valid]
        if broken or gone:
            raise CommandError(f"{len(broken) + len(gone)} of {len(found) + len(gone)} ledgers do not fit.")
        if options["checkpoint"]:
            self._keep(options["checkpoint"], [result.head for result in found.values()])

    def _projects(self, named: str | None) -> list[Project]:
        if named is None:
            return list(Project.objects.order_by("slug"))
        with readable_refusals():
            return [project_named(named)]

    def _check(self, project: Project, anchors: Mapping[str, Checkpoint]) -> Verification:
        result = verify(project, anchors.get(str(project.pk)))
        if result.first_broken is None:
            self.stderr.write(f"{project.slug}: {result.checked} events, valid")
        else:
            self.stdout.write(f"{project.slug}: {described(result.first_broken)}")
        return result

    def _keep(self, name: str, heads: Iterable[Checkpoint]) -> None:
        text = json.dumps({"format": FORMAT, "checkpoints": [asdict(head) for head in heads]}, indent=2)
        if name == "-":
            self.stdout.write(text)
            return
        file = Path(name)
        try:
            beside = file.with_name(f"{file.name}.new")
            beside.write_text(text + "\n", encoding="utf-8")
            beside.replace(file)
        except OSError as problem:
            raise CommandError(f"The checkpoint could not be written: {problem.strerror}.") from problem


def described(broken: Broken) -> str:
    """One line: the event, what it is about, and what does not fit."""
    event = f"event {broken.number} " if broken.number is not None else ""
    return f"{event}{broken.target}: {broken.problem}"


def _gone(anchors: Mapping[str, Checkpoint], projects: Iterable[Project], *, everything: bool) -> list[str]:
    """Projects that a checkpoint names and the database has lost."""
    return sorted(set(anchors) - {str(project.pk) for project in projects}) if everything else []


def read_checkpoints(name: str) -> dict[str, Checkpoint]:
    """The checkpoints of a file by project. Raises CommandError with what is wrong with the file."""
    try:
        data = json.loads(Path(name).read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise ValueError(FORMAT)
        points = [_checkpoint(**item) for item in data["checkpoints"]]
    except OSError as problem:
        raise CommandError(f"The checkpoint file could not be read: {problem.strerror}.") from problem
    except (ValueError, KeyError, TypeError) as problem:
        raise CommandError(f"{name} is not a checkpoint file.") from problem
    return {point.project: point for point in points}


def _checkpoint(project: Any, number: Any, hash: Any) -> Checkpoint:
    if not (looks_like_uuid(str(project)) and isinstance(number, int) and len(str(hash)) == 64):
        raise ValueError(project)
    return Checkpoint(str(project), number, str(hash))
