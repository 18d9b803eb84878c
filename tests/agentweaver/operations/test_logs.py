"""A line for every request, with its id, and never a secret or what agents wrote (SPEC 10)."""

from __future__ import annotations

import json
import logging
import re
import sys
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from agentweaver.api import projects
from agentweaver.operations.logs import Lines, Plain, configuration, without_secrets
from governance.models import User
from governance.pages.views import home
from tests.agentweaver.api.conftest import Caller
from tests.agentweaver.operations.conftest import Written
from tests.conftest import Team

PASSWORD = "correct-horse-battery"
AGENT = "Zanzibar"
TEXT = "The treasure lies under the third pier."


def access(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The access log without what differs each time."""
    ours = [line for line in lines if line["logger"] == "agentweaver.access"]
    return [
        {n: v for n, v in line.items() if n not in ("time", "ms", "message", "request_id")} for line in ours
    ]


def test_a_request_is_one_line_with_method_route_status_time_actor_and_project(
    owner: Caller, written: Written
) -> None:
    response = owner.get(f"agents/{AGENT}/memory?type=learning", **{"X-Request-ID": "from-the-caller-1"})
    assert response.status_code == 200
    assert access(written()) == [
        {
            "level": "INFO", "logger": "agentweaver.access", "method": "GET", "status": 200, "actor": "owner",
            "route": "/api/projects/<project:p>/agents/<str:name>/memory", "project": "lighthouse",
            "client": "127.0.0.1",
        }
    ]  # fmt: skip
    [line] = [line for line in written() if line["logger"] == "agentweaver.access"]
    assert line["request_id"] == "from-the-caller-1"
    assert line["ms"] > 0
    assert line["message"].startswith("GET /api/projects/<project:p>/agents/<str:name>/memory 200 ")


def test_a_refusal_has_its_code_and_a_page_its_reader(owner: Caller, team: Team, written: Written) -> None:
    owner.get("decisions/999")
    Client().get("/api/projects")
    reader = Client()
    reader.force_login(User.objects.get(username="viewer"))
    reader.get("/projects/lighthouse/inbox")
    reader.get("/nothing/there")
    told = [
        (line.get("route"), line["status"], line.get("actor"), line.get("code")) for line in access(written())
    ]
    assert told == [
        ("/api/projects/<project:p>/decisions/<row:id>", 404, "owner", "not_found"),
        ("/api/projects", 401, None, "not_authenticated"),
        ("/projects/<str:project>/inbox", 200, "viewer", None),
        ("none", 404, "viewer", None),
    ]


def test_every_line_of_a_request_names_its_id_and_none_after_it(
    owner: Caller, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise KeyError("unexpected")

    monkeypatch.setattr(projects, "_shown", broken)
    owner.get("", **{"X-Request-ID": "from-the-caller-1"})
    logging.getLogger("elsewhere").warning("After.")
    assert [line.get("request_id") for line in written()[-3:]] == [
        "from-the-caller-1",
        "from-the-caller-1",
        None,
    ]
    fault = written()[-3]
    assert (fault["level"], fault["message"]) == ("ERROR", "internal_error at /api/projects/<project:p>")
    assert "KeyError: 'unexpected'" in fault["exc_info"]


def asked_in_every_way(owner: Caller, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Requests that carry secrets wherever they can, answered well, badly and not at all; returns what must not be written."""
    token, bad = str(owner.token), "awr_" + "B" * 43
    person = User.objects.get(username="owner")
    person.set_password(PASSWORD)
    person.save()
    memory = f"agents/{AGENT}/memory"
    answers = [
        owner.post(memory, {"type": "learning", "content": TEXT}),
        owner.post(memory, {"type": "learning", "content": TEXT, "importance": TEXT}),
        owner.get(f"memory?type={TEXT}&token={token}"),
        Caller(owner.base, bad).get(f"agents/{AGENT}/context"),
        Client().get(f"/api/{token}?token={token}", headers={"Authorization": f"Basic {PASSWORD}"}),
        Client().get(f"{owner.base}/agents/{AGENT}/context", headers={"Host": "evil.example"}),
        Client().get(f"/{AGENT}?token={token}"),
    ]
    form = {"username": "owner", "password": PASSWORD}
    browser = Client(raise_request_exception=False)
    answers += [
        Client(enforce_csrf_checks=True).post("/account/login", form),
        browser.post("/account/login", {**form, "password": PASSWORD + "!"}),
        browser.post("/account/login", form),
    ]
    monkeypatch.setattr(projects, "_shown", lambda _: 1 / 0)
    monkeypatch.setattr(home, "my_projects", lambda *_, **__: 1 / 0)
    answers += [owner.get(), browser.get(f"/?token={token}&about={AGENT}")]
    assert [answer.status_code for answer in answers] == [
        201, 400, 400, 401, 404, 400, 404, 403, 200, 302, 500, 500,
    ]  # fmt: skip
    return [token[:12], bad[:12], PASSWORD, browser.cookies["sessionid"].value, AGENT, TEXT]


def test_no_secret_and_no_text_of_agents_is_ever_written(
    owner: Caller, written: Written, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # SQL is logged while debugging only; its parameters are texts of agents.
    monkeypatch.setattr(connection, "force_debug_cursor", False)
    forbidden = asked_in_every_way(owner, monkeypatch)
    lines = [json.dumps(line) for line in written()]
    plain = [Plain().format(made) for made in caplog.records]
    assert len([line for line in lines if "ZeroDivisionError" in line]) == 2
    assert len(plain) >= 12
    assert [(secret, line) for secret in forbidden for line in [*lines, *plain] if secret in line] == []


def test_what_looks_like_a_credential_is_cut_wherever_it_stands() -> None:
    run, mine = "awr_" + "x1-_" * 11, "awp_" + "y" * 43
    assert without_secrets(f"a {run}, b='{mine}'") == "a awr_x1-_…, b='awp_yyyy…'"
    assert without_secrets(f"Authorization: Bearer {mine}") == "Authorization: Bearer awp_yyyy…"
    assert without_secrets("authorization: bearer s3cret;") == "authorization: bearer …"
    assert without_secrets("Cookie: sessionid=abc123; csrftoken=def; zone=UTC") == (
        "Cookie: sessionid=…; csrftoken=…; zone=UTC"
    )
    assert without_secrets("awp_ and awr_ are prefixes") == "awp_ and awr_ are prefixes"


def record(message: str, *args: object, **more: object) -> logging.LogRecord:
    made = logging.LogRecord("some.where", logging.WARNING, "f.py", 1, message, args, None)
    made.__dict__.update(more)
    return made


def test_in_earnest_a_record_is_one_line_of_json_with_listed_fields_only() -> None:
    line = Lines().format(
        record("A %s\nB", "x", status=404, actor="ana", request=object(), secret="s", code=None)
    )
    told = json.loads(line)
    del told["time"]
    assert told == {
        "level": "WARNING",
        "logger": "some.where",
        "message": "A x\nB",
        "status": 404,
        "actor": "ana",
    }
    assert "\n" not in line


def test_gunicorn_names_addresses_without_their_queries() -> None:
    made = record("Error handling request %s", "/api/projects?token=s3cret&q=x")
    made.name = "gunicorn.error"
    assert json.loads(Lines().format(made))["message"] == "Error handling request /api/projects?…"


def test_while_debugging_a_message_cannot_open_a_line_of_its_own() -> None:
    line = Plain().format(record("A %s", "x\n12:00:00 ERROR forged\x1b[31m\x85"))
    assert line.endswith(r"WARNING some.where: A x\x0a12:00:00 ERROR forged\x1b[31m\x85")
    assert line.count("\n") == 0


@pytest.mark.parametrize("formatter", [Lines(), Plain()])
def test_a_trace_is_written_without_credentials(formatter: logging.Formatter) -> None:
    made = record("Failed")
    try:
        raise ValueError("awp_" + "z" * 43)
    except ValueError:
        made.exc_info = sys.exc_info()
    line = formatter.format(made)
    assert re.search(r"ValueError: awp_zzzz(…|\\u2026)", line)
    assert "z" * 10 not in line


@pytest.mark.parametrize("readable", [True, False])
def test_libraries_that_print_whole_requests_do_not(readable: bool) -> None:
    told = configuration(readable=readable, level="INFO")
    assert told["handlers"]["stderr"]["formatter"] == ("plain" if readable else "lines")
    assert {n: t["handlers"] for n, t in told["loggers"].items()} == {name: [] for name in told["loggers"]}
    assert (
        told["loggers"]["django.server"]["level"] == told["loggers"]["gunicorn.access"]["level"] == "CRITICAL"
    )
