"""The OpenAPI document: without warnings, complete, readable without another host; and no answer lies outside of it."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from django.test import Client
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from agentweaver.api.docs import document
from tests.agentweaver.api.test_authority import ROUTES, World, world

__all__ = ["world"]

CHECKS: list[Any] = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance,
    response_schema_conformance, negative_data_rejection,
]  # fmt: skip
GENERATED = (
    "owner", "contributor", "viewer", "orchestrator", "worker", "coordinator", "stranger", "ended_coordinator", "anonymous",
)  # fmt: skip
EXAMPLES = 4
"""For each operation, each caller and each mode: a sweep over everything, bounded to about a minute of computing in all."""


def test_the_document_has_no_warning(tmp_path: Path) -> None:
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yml"))


def test_every_operation_tells_its_problems_and_how_to_prove_oneself() -> None:
    for path, operations in document()["paths"].items():
        for method, told in operations.items():
            problems = {status for status in told["responses"] if int(status) >= 400}
            assert {"400", "401", "500", "503"} <= problems, (method, path)
            for status in problems:
                assert list(told["responses"][status]["content"]) == ["application/problem+json"]
            assert told["security"] == [{"bearer": []}, {"session": []}]
            assert told["description"]


def test_every_route_of_the_table_is_in_the_document() -> None:
    listed = {(m.upper(), p) for p, operations in document()["paths"].items() for m in operations}
    assert len(listed) == len([route for route in ROUTES if route.needs != "public"])


def test_closed_lists_have_names_of_their_own() -> None:
    names = {name for name, told in document()["components"]["schemas"].items() if "enum" in told}
    assert {
        "MemoryType",
        "DecisionType",
        "EntryType",
        "Importance",
        "TrustState",
        "RunRole",
        "OmitReason",
    } <= names
    assert [name for name in names if re.search(r"Enum|[0-9]", name)] == []


def test_bodies_are_closed() -> None:
    schemas = document()["components"]["schemas"]
    bodies = {
        told["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[-1]
        for operations in document()["paths"].values()
        for told in operations.values()
        if "requestBody" in told
    }
    assert [name for name in bodies if schemas[name].get("additionalProperties") is not False] == []


@pytest.mark.parametrize("form", ["application/json", "application/vnd.oai.openapi"])
def test_the_document_is_served_to_anyone(client: Client, form: str) -> None:
    response = client.get("/api/schema", headers={"Accept": form})
    assert response.status_code == 200
    assert b"/api/projects/{p}/runs/{run_id}/context" in response.content


def test_the_page_loads_nothing_from_another_host_and_runs_no_inline_script(client: Client) -> None:
    page = client.get("/api/docs")
    html = page.content.decode()
    assert page.status_code == 200
    assert re.findall(r"https?://", html) == []
    assert re.findall(r"<script(?![^>]*\bsrc=)", html) == []
    assets = re.findall(r'(?:src|href)="/static/([^"]+)"', html)
    assert len(assets) == 4
    assert [name for name in assets if finders.find(name) is None] == []
    policy = dict(part.strip().split(" ", 1) for part in page["Content-Security-Policy"].split(";"))
    assert (policy["script-src"], policy["connect-src"], policy["style-src"]) == (
        "'self'", "'self'", "'self' 'unsafe-inline'",
    )  # fmt: skip
    script = client.get("/api/docs?script=")
    assert (script.status_code, script["Content-Type"]) == (200, "application/javascript")
    assert client.get("/account/login")["Content-Security-Policy"].count("unsafe-inline") == 0


# Generated requests


@pytest.fixture
def generated(world: World) -> Iterator[Any]:
    """The schema as a generator of requests, aimed at our WSGI application on the test's own connection."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    try:
        schema = schemathesis.openapi.from_dict(_without_credentials(document()))
        schema.app = get_wsgi_application()
        yield schema
    finally:
        for signal in (request_started, request_finished):
            signal.connect(close_old_connections)


def _without_credentials(told: dict[str, Any]) -> dict[str, Any]:
    """The callers bring their own; a generated one would only ever be refused."""
    told = copy.deepcopy(told)
    del told["components"]["securitySchemes"]
    for operations in told["paths"].values():
        for operation in operations.values():
            del operation["security"]
    return told


def _real(world: World, path: str) -> dict[str, Any]:
    """Path parameters that lead to a row that is there."""
    row = "entry" if "/inbox/" in path else "decision" if "/decisions/" in path else "memory"
    known = {
        "p": world.ids["p"], "name": "Ana", "run_id": str(world.ids["run"]), "username": "viewer",
        "session_id": "first", "id": world.ids[row],
    }  # fmt: skip
    return {name: value for name, value in known.items() if f"{{{name}}}" in path}


@pytest.mark.parametrize("caller", GENERATED)
def test_no_generated_request_is_answered_outside_the_schema(
    world: World, generated: Any, caller: str
) -> None:
    token = world.tokens[caller]
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    asked = set()
    for found in generated.get_all_operations():
        operation = found.ok()
        for mode in _modes(operation):
            asked |= _ask(operation, mode, headers, _real(world, operation.path))
    assert asked >= {"application/json", "multipart/form-data", None}


def _modes(operation: Any) -> list[GenerationMode]:
    """Wrong values need something to be wrong in."""
    told = operation.definition.raw
    can_be_wrong = "requestBody" in told or any(
        given["in"] == "query" for given in told.get("parameters", [])
    )
    return list(GenerationMode) if can_be_wrong else [GenerationMode.POSITIVE]


def _ask(
    operation: Any, mode: GenerationMode, headers: dict[str, str], path: dict[str, Any]
) -> set[str | None]:
    """Asks; the kinds of body that were sent."""
    kinds: set[str | None] = set()
    strategy = operation.as_strategy(generation_mode=mode, path_parameters=path)

    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
    )  # fmt: skip
    @given(case=strategy)
    def ask(case: Any) -> None:
        kinds.add(case.media_type)
        with transaction.atomic():
            case.call_and_validate(headers=headers, checks=CHECKS)
            transaction.set_rollback(True)

    ask()
    return kinds
