"""What is deployed fits what is there: containers, their variables, their files, and the guide for operators."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands
from prometheus_client import REGISTRY

from agentweaver.operations import metrics
from agentweaver.operations.probes import PROBES

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = (ROOT / "agentweaver/settings.py").read_text(encoding="utf-8")
VARIABLES = set(re.findall(r"""(?:env(?:\.\w+)?\(\s*|variable: str = )"([A-Z_]+)""", SETTINGS))
GUIDE = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
CONTAINER = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
# What belongs to Python, the shell and PostgreSQL's image.
NOT_OURS = {
    "PATH",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "POSTGRES_USER",
    "POSTGRES_DB",
    "POSTGRES_PASSWORD",
}


def instructions(word: str) -> list[str]:
    return [line.strip() for line in re.findall(rf"^{word} (.*)$", CONTAINER, re.MULTILINE)]


# The guide


def test_the_guide_explains_every_variable_and_no_other() -> None:
    table = GUIDE.split("## Settings")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", table, re.MULTILINE)) == VARIABLES


def test_the_guide_names_numbers_as_settings_have_them() -> None:
    told = dict(re.findall(r"^\| `([A-Z_]+)` \| `([\d.]+)` \|", GUIDE, re.MULTILINE))
    read = dict(re.findall(r"""env\.(?:int|float)\(\s*"([A-Z_]+)",\s*default=([\d_.* ]+)""", SETTINGS))
    assert {name: float(value) for name, value in told.items()} == {
        name: product(read[name]) for name in told
    }
    assert len(told) > 12


def product(written: str) -> float:
    """`60 * 60` as a number."""
    return math.prod(float(part) for part in written.replace("_", "").split("*"))


def test_the_guide_names_every_figure_and_no_other() -> None:
    table = GUIDE.split("## Probes")[1].split("\n## ")[0]
    told = set(re.findall(r"^\| `(agentweaver_[a-z_]+)`", table, re.MULTILINE))
    counted = {
        f"{found.name}_total" if found.type == "counter" else found.name
        for found in REGISTRY.collect()
        if found.name.startswith("agentweaver_")
    }
    assert told == counted | {"agentweaver_database_up"} | {
        f"agentweaver_{name}" for name in metrics._MEANING
    }


def test_the_guide_names_every_probe_and_only_commands_that_exist() -> None:
    assert [path for path in PROBES if f"`{path}`" not in GUIDE] == []
    named = set(re.findall(r"manage\.py ([a-z_]+)", GUIDE))
    assert named - set(get_commands()) == set()
    assert {"migrate", "collectstatic", "verify_ledger", "issue_token"} <= named


# The image


def test_the_image_sets_variables_that_settings_read() -> None:
    named = {name for line in instructions("ENV") for name in re.findall(r"([A-Z_]+)=", line)}
    assert named - VARIABLES - NOT_OURS == set()
    assert {"DATABASE_URL", "STATIC_ROOT", "WEB_BIND"} <= named


def test_the_image_copies_what_exists_and_everything_that_runs() -> None:
    sources = [part for line in instructions("COPY") if "--from" not in line for part in line.split()[:-1]]
    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert {
        "manage.py",
        "gunicorn.conf.py",
        "agentweaver",
        "governance",
        "memory",
        "static",
        "templates",
    } <= set(sources)
    let_in = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
        if line.startswith("!")
    }
    assert let_in == set(sources)


def test_the_image_installs_from_hashes_and_does_not_run_as_root() -> None:
    [install] = [line for line in instructions("RUN") if "pip install" in line]
    assert "--require-hashes" in install
    assert "-r requirements/base.txt" in install
    [user] = instructions("USER")
    assert re.search(rf"useradd --system --uid \d+ .*\b{user}\b", CONTAINER)
    assert CONTAINER.index("USER ") < CONTAINER.index('CMD ["gunicorn')
    assert CONTAINER.index("collectstatic") < CONTAINER.index("USER ")


def test_the_image_runs_and_probes_what_there_is() -> None:
    assert instructions("CMD")[-1] == '["gunicorn", "agentweaver.wsgi"]'
    [port] = instructions("EXPOSE")
    assert re.findall(r"http://127\.0\.0\.1:(\d+)(/\w+)", CONTAINER) == [(port, "/healthz")]
    assert f"WEB_BIND=0.0.0.0:{port}" in CONTAINER
    assert CONTAINER.count("FROM python:3.13-slim") == 2


# The services


def test_the_services_set_variables_that_settings_read() -> None:
    for name in ("migrate", "app"):
        given = set(COMPOSE["services"][name]["environment"])
        assert given - VARIABLES == set(), name
        assert {"SECRET_KEY", "ALLOWED_HOSTS", "DATABASE_URL", "TRUSTED_PROXIES"} <= given
    assert set(COMPOSE["services"]["database"]["environment"]) <= NOT_OURS


def test_no_secret_is_written_into_the_services() -> None:
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    for name in ("SECRET_KEY", "POSTGRES_PASSWORD", "METRICS_TOKEN"):
        assert re.search(rf"\$\{{{name}:[?-]", text), name
        assert re.findall(rf"^\s+{name}: (?!\$\{{).*", text, re.MULTILINE) == []


def test_the_services_wait_for_each_other_and_name_what_they_use() -> None:
    services, app = COMPOSE["services"], COMPOSE["services"]["app"]
    assert app["depends_on"] == {
        "database": {"condition": "service_healthy"}, "migrate": {"condition": "service_completed_successfully"},
    }  # fmt: skip
    assert "test" in services["database"]["healthcheck"]
    used = {mount.split(":")[0] for service in services.values() for mount in service.get("volumes", [])}
    assert used == set(COMPOSE["volumes"])
    assert (ROOT / app["build"]["dockerfile"]).is_file()
    assert services["migrate"]["command"][:2] == ["python", "manage.py"]
    assert services["migrate"]["command"][2] in get_commands()
    # Reached from this machine alone: a proxy stands before it.
    assert app["ports"] == ["127.0.0.1:8000:8000"]


def test_requests_get_as_long_to_finish_as_the_server_gives_them() -> None:
    [grace] = re.findall(r'"WEB_GRACEFUL_TIMEOUT", default=(\d+)', SETTINGS)
    waits = [int(COMPOSE["services"]["app"]["stop_grace_period"].rstrip("s"))]
    waits += [int(seconds) for seconds in re.findall(r"^TimeoutStopSec=(\d+)$", GUIDE, re.MULTILINE)]
    assert [wait for wait in waits if wait <= int(grace)] == []
    assert len(waits) == 2


@pytest.mark.parametrize("language", ["yaml", "json"])
def test_samples_can_be_read(language: str) -> None:
    found = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert found
    for sample in found:
        assert yaml.safe_load(sample)
