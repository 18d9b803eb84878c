"""Writes docs/transcript.md by really doing it: an empty database, a real team's files, a real server, curl.

    .venv/bin/python -m tests.transcript

Needs the folder of real trees that AGENTWEAVER_CORPUS names. Every command is run in one shell; its answer is recorded with tokens
cut short, JSON laid out, and long lists and texts shortened with a note of how much is missing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path(os.environ.get("AGENTWEAVER_CORPUS", ROOT.parent / "shared" / "corpus"))
TREE = "christianhelle__httprunner"
SHOWN_ROWS = 2
WHOLE_LIST = 4
SHOWN_TEXT = 300
SHOWN_LINES = 40
END = "===== end of the answer ====="

INTRODUCTION = """\
# From an empty database to a receipt

What the author of an orchestrator would do on the first day. The commands ran one after the other against a real server and a real team's
files: the `.squad` folder of [christianhelle/httprunner](https://github.com/christianhelle/httprunner) (MIT licence) as of 29 May 2026, names of
people replaced. The answers are the server's; only tokens are cut short, JSON is laid out over lines, and `…` says where something long was cut.
`tests/transcript.py` makes this page.
"""


class Heading(str):
    """A section of the page."""

    __slots__ = ()


class Prose(str):
    """A paragraph of the page."""

    __slots__ = ()


class Command(str):
    """A command to run; what it prints is recorded."""

    __slots__ = ()


H, P, C = Heading, Prose, Command
PYTHON = ".venv/bin/python manage.py"

STEPS: tuple[str, ...] = (
    H("An empty database, and a team's files"),
    C(f"{PYTHON} migrate --verbosity 0"),
    P("First what would happen. `found` is always `taken` plus `skipped`, and every skipped piece is named with its line and reason."),
    C(f"{PYTHON} import_squad httprunner ~/httprunner --create --dry-run | head -25"),
    P("Then the import itself. Everything comes in as `legacy`, whatever the files say about being approved."),
    C(f"{PYTHON} import_squad httprunner ~/httprunner --create | head -8"),
    P("Again adds nothing."),
    C(f"{PYTHON} import_squad httprunner ~/httprunner | head -1"),
    H("An owner and an orchestrator"),
    P("`issue_token` prints the token and nothing else; the rest is on standard error."),
    C(f"owner=$({PYTHON} issue_token ana --create)"),
    C(f"{PYTHON} grant httprunner ana owner"),
    C(f"orchestrator=$({PYTHON} issue_token dispatch --create --days 90)"),
    C(f"{PYTHON} grant httprunner dispatch orchestrator"),
    P("The server runs (`make run`). Without a credential it says nothing; an orchestrator may read, but not decide."),
    C(
        "api=http://127.0.0.1:8000/api/projects/httprunner\n"
        "json='Content-Type: application/json'\n"
        "as_owner=\"Authorization: Bearer $owner\"\n"
        "as_orchestrator=\"Authorization: Bearer $orchestrator\""
    ),
    C("curl -s $api/decisions"),
    H("Nothing imported is told to anybody"),
    P("What would the agent Bishop be told now? The bare block, or 204 when there is none."),
    C("curl -s -o /dev/null -w '%{http_code}\\n' -H \"$as_owner\" -H 'Accept: text/plain' $api/agents/Bishop/context"),
    H("The owner decides"),
    P("The legacy decisions. No real ledger states one of our types, so each is `technical`, which is never compiled."),
    C("curl -s -H \"$as_owner\" \"$api/decisions?trust_state=legacy&page_size=100\" > decisions.json; cat decisions.json"),
    P(
        "Ana takes the one about sensitive headers, and says what it is: `architectural`. An approval names the revision that was read; if the"
        " text had changed since, it would be refused."
    ),
    C(
        "pick() { python3 -c 'import json, sys; print(next(row[\"id\"] for row in json.load(sys.stdin)[\"items\"]"
        " if sys.argv[1] in row.get(\"title\", \"\") + row[\"content\"]))' \"$1\"; }\n"
        "headers=$(pick 'Sensitive header redaction' < decisions.json)\n"
        "platform=$(pick 'Platform automation' < decisions.json)"
    ),
    C("curl -s -H \"$as_orchestrator\" -H \"$json\" -d '{\"revision\": 1, \"type\": \"architectural\"}' $api/decisions/$headers/approve"),
    C("curl -s -H \"$as_owner\" -H \"$json\" -d '{\"revision\": 7, \"type\": \"architectural\"}' $api/decisions/$headers/approve"),
    C("curl -s -H \"$as_owner\" -H \"$json\" -d '{\"revision\": 1, \"type\": \"architectural\"}' $api/decisions/$headers/approve"),
    P("Another one is history by now: refused, with a reason."),
    C("curl -s -H \"$as_owner\" -H \"$json\" -d '{\"reason\": \"All four issues are closed.\"}' $api/decisions/$platform/archive"),
    P("And one of the things Bishop learnt is worth telling Bishop every time."),
    C("curl -s -H \"$as_owner\" \"$api/agents/Bishop/memory?trust_state=legacy&type=learning\" > learnings.json; cat learnings.json"),
    C(
        "learning=$(python3 -c 'import json; print(json.load(open(\"learnings.json\"))[\"items\"][0][\"id\"])')\n"
        "curl -s -H \"$as_owner\" -H \"$json\" -d '{\"revision\": 1, \"importance\": \"high\"}' $api/agents/Bishop/memory/$learning/approve"
    ),
    H("The orchestrator registers a run"),
    P("`token` is the run's own credential: shown this once, dead when the run ends."),
    C(
        "curl -s -H \"$as_orchestrator\" -H \"$json\" -d '{\"agent_name\": \"bishop\", \"external_id\": \"issue-213\"}' $api/runs > run.json; cat run.json"
    ),
    C(
        "run=$(python3 -c 'import json; print(json.load(open(\"run.json\"))[\"id\"])')\n"
        "as_run=\"Authorization: Bearer $(python3 -c 'import json; print(json.load(open(\"run.json\"))[\"token\"])')\""
    ),
    P("Before the turn it pulls the context: the charter, the block, what is in it and why everything else is not. A receipt is kept."),
    C("curl -s -X POST -H \"$as_orchestrator\" $api/runs/$run/context > context.json; cat context.json"),
    P("This is what goes into the prompt, byte for byte:"),
    C("python3 -c 'import json; print(json.load(open(\"context.json\"))[\"context\"], end=\"\")'"),
    P("A preview is the same block without a receipt. Its ETag comes from the project's row alone, so asking again costs nearly nothing."),
    C(
        "etag=$(curl -s -D - -o /dev/null -H \"$as_orchestrator\" -H 'Accept: text/plain' $api/agents/Bishop/context | tr -d '\\r' | sed -n 's/^etag: //Ip')\n"
        "curl -s -o /dev/null -w '%{http_code}\\n' -H \"$as_orchestrator\" -H 'Accept: text/plain' -H \"If-None-Match: $etag\" $api/agents/Bishop/context"
    ),
    H("The run works"),
    P("It writes down what it learnt. It cannot speak for another agent, and it cannot decide."),
    C(
        "curl -s -H \"$as_run\" -H \"$json\" -d '{\"agent_name\": \"Bishop\", \"slug\": \"one-client\", \"type\": \"learning\","
        " \"title\": \"One HTTP client for all requests\", \"content\": \"Building the client once halves the time of 100 requests.\"}' $api/decisions/inbox"
    ),
    C("curl -s -H \"$as_run\" -H \"$json\" -d '{\"type\": \"learning\", \"content\": \"x\"}' $api/agents/Ripley/memory"),
    C("curl -s -H \"$as_run\" -H \"$json\" -d '{\"reason\": \"because\"}' $api/decisions/$headers/archive"),
    P("The orchestrator reports the end, and the scribe does its part: the run's own learning is promoted."),
    C("curl -s -H \"$as_orchestrator\" -H \"$json\" -d '{\"status\": \"completed\", \"summary\": \"One client, 100 requests in half the time.\"}' $api/runs/$run/complete"),
    P("The credential died with the run."),
    C("curl -s -H \"$as_run\" $api/decisions"),
    H("Afterwards: who was told what"),
    P("Which runs were told the decision about headers?"),
    C("curl -s -H \"$as_owner\" $api/decisions/$headers/receipts"),
    P("Who changed it, when, and how?"),
    C("curl -s -H \"$as_owner\" \"$api/events?target=decision:$headers\""),
    P("And is all of this still as it was written?"),
    C("curl -s -H \"$as_owner\" $api/events/verify"),
    C(f"{PYTHON} verify_ledger"),
)  # fmt: skip


def main() -> int:
    """Run the steps and write the page; exit code 1 when the corpus is missing."""
    source = CORPUS / TREE
    if not source.is_dir():
        print(f"There is no {TREE} in {CORPUS}.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        shutil.copytree(source, home / "httprunner")
        port = _free_port()
        environment = _environment(home)
        with _shell(environment, home) as shell:
            page = "\n\n".join(_played(shell, environment, port))
    (ROOT / "docs" / "transcript.md").write_text(f"{INTRODUCTION}\n{page}\n", encoding="utf-8")
    return 0


def _environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, "HOME": str(home), "DATABASE_URL": f"sqlite:///{home}/db.sqlite3", "DEBUG": "true",
            "SECRET_KEY": "for-this-transcript-only", "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _shell(environment: dict[str, str], home: Path) -> Iterator[subprocess.Popen[str]]:
    """One bash for all commands, in a folder of its own where `.venv` and `manage.py` are those of the checkout."""
    for name in (".venv", "manage.py"):
        (home / name).symlink_to(ROOT / name)
    shell = subprocess.Popen(
        ["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=home
    )  # fmt: skip
    try:
        yield shell
    finally:
        shell.kill()
        shell.wait()


@contextmanager
def _server(environment: dict[str, str], port: int) -> Iterator[None]:
    server = subprocess.Popen(
        [ROOT / ".venv/bin/python", ROOT / "manage.py", "runserver", "--noreload", f"127.0.0.1:{port}"],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _wait_for(f"http://127.0.0.1:{port}/api/schema")
        yield
    finally:
        server.terminate()
        server.wait()


def _wait_for(address: str) -> None:
    for _ in range(100):
        try:
            urlopen(address).close()
            return
        except URLError:
            time.sleep(0.2)
    raise RuntimeError("The server did not start.")


def _played(shell: subprocess.Popen[str], environment: dict[str, str], port: int) -> Iterator[str]:
    first_request = next(number for number, step in enumerate(STEPS) if "curl" in step)
    for step in STEPS[:first_request]:
        yield _shown(step, shell, port)
    with _server(environment, port):
        for step in STEPS[first_request:]:
            yield _shown(step, shell, port)


def _shown(step: str, shell: subprocess.Popen[str], port: int) -> str:
    if isinstance(step, Heading):
        return f"## {step}"
    if isinstance(step, Prose):
        return str(step)
    answer = _answer(shell, step.replace("127.0.0.1:8000", f"127.0.0.1:{port}"))
    answer = _laid_out(answer.replace(f"127.0.0.1:{port}", "127.0.0.1:8000"))
    prompted = "\n".join(f"$ {line}" for line in step.split("\n"))
    return f"```console\n{prompted}\n{answer}```"


def _answer(shell: subprocess.Popen[str], command: str) -> str:
    assert shell.stdin is not None
    assert shell.stdout is not None
    shell.stdin.write(f"{command}\necho; echo '{END}'\n")
    shell.stdin.flush()
    lines: list[str] = []
    while (line := shell.stdout.readline()).strip() != END:
        if not line:
            raise RuntimeError(f"The shell ended at: {command}")
        lines.append(line)
    text = "".join(lines)
    return text.removesuffix("\n")


def _laid_out(answer: str) -> str:
    answer = re.sub(r"\b(aw[rp]_[\w-]{6})[\w-]+", r"\1…", answer)
    # An answer that is no JSON is shown as it came.
    with suppress(ValueError):
        answer = json.dumps(_cut(json.loads(answer)), indent=2, ensure_ascii=False) + "\n"
    lines = answer.splitlines(keepends=True)
    if len(lines) > SHOWN_LINES and not answer.startswith("{"):
        lines = [*lines[:SHOWN_LINES], f"… {len(lines) - SHOWN_LINES} more lines\n"]
    return "".join(lines)


def _cut(value: Any) -> Any:
    """A JSON value with long lists and texts cut."""
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in value.items()}
    if isinstance(value, list):
        if len(value) <= WHOLE_LIST:
            return [_cut(item) for item in value]
        return [*(_cut(item) for item in value[:SHOWN_ROWS]), f"… {len(value) - SHOWN_ROWS} more"]
    if isinstance(value, str) and len(value) > SHOWN_TEXT:
        return f"{value[:SHOWN_TEXT]}… {len(value) - SHOWN_TEXT} more characters"
    return value


if __name__ == "__main__":
    sys.exit(main())
