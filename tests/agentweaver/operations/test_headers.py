"""What every answer tells the browser it must not do (SPEC 10, ADR 12)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from governance.models import User
from tests.agentweaver.api.conftest import Caller
from tests.conftest import Team

ROOT = Path(__file__).parents[3]
STRICT = {
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "font-src 'self'",
    "connect-src 'self'", "form-action 'self'", "base-uri 'none'", "object-src 'none'", "frame-ancestors 'none'",
}  # fmt: skip
SAID = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@pytest.fixture
def answers(team: Team, owner: Caller) -> dict[str, Any]:
    """One answer of each kind: pages, fragments, forms, the API, errors of Django's own, the admin."""
    person = User.objects.get(username="owner")
    reader = Client()
    reader.force_login(person)
    User.objects.filter(pk=person.pk).update(is_staff=True, is_superuser=True)
    htmx = {"HX-Request": "true"}
    return {
        "page": reader.get("/projects/lighthouse/inbox"),
        "fragment": reader.get("/projects/lighthouse/inbox", headers=htmx),
        "redirect": reader.get("/account/login"),
        "log-in": Client().get("/account/login"),
        "hidden": reader.get("/projects/elsewhere/inbox"),
        "api": owner.get(),
        "problem": owner.get("decisions/999"),
        "no route": Client().get("/nothing"),
        "method": reader.post("/projects/lighthouse/audit"),
        "csrf": Client(enforce_csrf_checks=True).post("/account/login", {}),
        "host": Client().get("/", headers={"Host": "evil.example"}),
        "admin": reader.get("/admin/"),
    }


def test_every_answer_carries_the_strict_policy_and_its_companions(answers: dict[str, Any]) -> None:
    lacking = {
        kind: answer.status_code
        for kind, answer in answers.items()
        if set(answer["Content-Security-Policy"].split("; ")) != STRICT
        or {name: answer.get(name) for name in SAID} != SAID
        or "camera=()" not in answer["Permissions-Policy"]
    }
    assert lacking == {}
    assert {kind: answer.status_code for kind, answer in answers.items()} == {
        "page": 200, "fragment": 200, "redirect": 302, "log-in": 200, "hidden": 404, "api": 200, "problem": 404,
        "no route": 404, "method": 405, "csrf": 403, "host": 400, "admin": 200,
    }  # fmt: skip


def test_no_page_holds_inline_code_or_style(answers: dict[str, Any]) -> None:
    inline = [
        (kind, mark)
        for kind, answer in answers.items()
        for mark in (b"<script>", b"<style", b" style=", b" onclick=", b" onload=", b"javascript:")
        if mark in answer.content.lower()
    ]
    assert inline == []


PROBE = """
import django, json
django.setup()
from django.conf import settings
from django.test import Client
from django.db import connection
plain = Client().get("/account/login", headers={"Host": "memory.example"})
forged = Client(REMOTE_ADDR="203.0.113.5").get("/account/login", headers={"Host": "memory.example", "X-Forwarded-Proto": "https"})
page = Client(REMOTE_ADDR="10.0.0.1").get("/account/login", headers={"Host": "memory.example", "X-Forwarded-Proto": "https"})
cookie = page.cookies["csrftoken"]
print(json.dumps({
    "plain": [plain.status_code, plain["Location"]], "forged": forged.status_code, "page": page.status_code,
    "hsts": page["Strict-Transport-Security"],
    "cookie": [bool(cookie["secure"]), bool(cookie["httponly"]), cookie["samesite"]],
    "session": [settings.SESSION_COOKIE_SECURE, settings.SESSION_COOKIE_HTTPONLY, settings.SESSION_COOKIE_SAMESITE],
}))
"""


def test_in_earnest_there_is_https_only_and_cookies_are_bound_to_it(tmp_path: Path) -> None:
    environment = {
        **os.environ, "DJANGO_SETTINGS_MODULE": "agentweaver.settings", "DEBUG": "false", "SECRET_KEY": "k" * 60,
        "ALLOWED_HOSTS": "memory.example", "TRUSTED_PROXIES": "10.0.0.0/8", "STATIC_ROOT": str(tmp_path),
        "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3",
    }  # fmt: skip

    def run(*command: str) -> str:
        return subprocess.run(
            [sys.executable, *command], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
        ).stdout

    run("manage.py", "migrate", "--verbosity", "0")
    run("manage.py", "collectstatic", "--no-input", "--verbosity", "0")
    told = json.loads(run("-c", PROBE))
    assert told == {
        "plain": [301, "https://memory.example/account/login"], "forged": 301, "page": 200,
        "hsts": "max-age=31536000; includeSubDomains; preload", "cookie": [True, True, "Lax"],
        "session": [True, True, "Lax"],
    }  # fmt: skip
