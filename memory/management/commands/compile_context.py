"""`manage.py compile_context` (SPEC 8.1): what an agent would be told, on standard output."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management import BaseCommand, CommandError

from memory.compiling.compiler import CompiledContext, compile_context, compile_decisions
from memory.enums import Layer
from memory.errors import Invalid
from memory.management.console import project_named, readable_refusals
from memory.values import clean_name


class Command(BaseCommand):
    help = "Print the context block an agent would be told, or nothing when no row is eligible. Writes no receipt: nobody was told."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", metavar="PROJECT", help="the project's slug or UUID")
        parser.add_argument("agent", metavar="AGENT", nargs="?", help="the agent's name, in any letter case")
        parser.add_argument(
            "--decisions-only",
            action="store_true",
            help="layer 1 alone, as a child run gets it; AGENT may be left out",
        )
        parser.add_argument("--json", action="store_true", help="the whole result with layers and reasons")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["agent"] is None and not options["decisions_only"]:
            raise CommandError("Name an AGENT, or ask for --decisions-only.")
        with readable_refusals():
            project = project_named(options["project"])
            compiled = (
                compile_decisions(project)
                if options["decisions_only"]
                else compile_context(project, _agent_name(options["agent"]))
            )
        if options["json"]:
            self.stdout.write(json.dumps(as_json(compiled), indent=2))
        elif compiled.text is not None:
            self.stdout.write(compiled.text, ending="")


def _agent_name(given: str) -> str:
    try:
        return clean_name(given)
    except ValueError as problem:
        raise Invalid({"agent": [str(problem)]}) from problem


def as_json(compiled: CompiledContext) -> dict[str, Any]:
    """The result as the API's preview answers it (SPEC 7); `context` is null when there is no block."""
    return {
        "agent_name": compiled.agent_name,
        "context": compiled.text,
        "sha256": compiled.sha256,
        "epoch": compiled.epoch,
        "tokens": compiled.tokens,
        "policy": asdict(compiled.policy),
        "over_budget": compiled.over_budget,
        "layers": [
            {"number": layer.value, "name": layer.label, "rows": _rows(compiled, layer)} for layer in Layer
        ],
        "omitted": [{"kind": row.kind, "id": row.id, "reason": row.reason} for row in compiled.omitted],
        "omitted_truncated": compiled.omitted_truncated,
    }


def _rows(compiled: CompiledContext, layer: Layer) -> list[dict[str, Any]]:
    return [
        {"kind": row.kind, "id": row.id, "revision": row.revision, "characters": row.characters}
        for row in compiled.layer(layer)
    ]
