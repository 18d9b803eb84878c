"""Logs: one JSON object a line where it runs in earnest, plain lines while debugging; never a secret, never agents' text.

A record shows its message, its error and the fields listed here. What a library attaches beyond that stays out: Django, for one,
attaches the whole request, query string and all. Settings read this module, so it asks for none while it is loaded.
"""

from __future__ import annotations

import logging
import re
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest
from pythonjsonlogger.json import JsonFormatter

from agentweaver.operations.routes import route_of

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that this thread answers; empty outside of one."""

FIELDS = ("method", "route", "status", "ms", "actor", "project", "client", "code")
"""What a record may say beside its message."""

_SECRETS = re.compile(
    r"(?i)(aw[rp]_[\w-]{4})[\w-]+|((?:bearer|basic)\s+)(?!aw[rp]_)\S+|((?:sessionid|csrftoken)=)[^;\s]+"
)
_QUERY = re.compile(r"\?\S+")
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) != "\t"}


def without_secrets(text: str) -> str:
    """The text with what looks like a credential cut off: the last net, under whatever a library or a trace may quote."""
    return _SECRETS.sub(lambda found: "".join(filter(None, found.groups())) + "…", text)


class Lines(JsonFormatter):
    """A JSON object a line: time, level, logger, message, request_id, then what the record says of FIELDS, then its error."""

    def add_fields(
        self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]
    ) -> None:
        log_data["time"] = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        log_data["level"] = record.levelname
        log_data["logger"] = record.name
        log_data["message"] = _message(record)
        if held := request_id.get():
            log_data["request_id"] = held
        log_data.update(_said(record))
        for name in ("exc_info", "stack_info"):
            if name in message_dict:
                log_data[name] = without_secrets(str(message_dict[name]))


class Plain(logging.Formatter):
    """A line a record, the error below it. A message cannot open a line of its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        at = self.formatTime(record, "%H:%M:%S")
        said = _message(record).translate(_CONTROLS)
        return f"{at} {record.levelname:<7} {record.name}: {said}"

    def formatException(self, ei: Any) -> str:  # noqa: N802
        return without_secrets(super().formatException(ei))


def _said(record: logging.LogRecord) -> dict[str, Any]:
    """The listed fields, when they are plain values: `status` of another library may be anything."""
    told = {name: getattr(record, name, None) for name in FIELDS}
    return {name: value for name, value in told.items() if isinstance(value, (str, int, float))}


def _message(record: logging.LogRecord) -> str:
    """The message, with the route where Django names the path of a request: paths hold the names of agents."""
    request = getattr(record, "request", None)
    if isinstance(request, HttpRequest) and isinstance(record.args, tuple):
        said = record.msg % tuple(route_of(request) if arg == request.path else arg for arg in record.args)
        return without_secrets(said)
    said = record.getMessage()
    # It names whole addresses, and only of requests that it could not read or that nobody could answer.
    return without_secrets(_QUERY.sub("?…", said) if record.name == "gunicorn.error" else said)


def configuration(*, readable: bool, level: str) -> dict[str, Any]:
    """LOGGING: everything goes to standard error through one handler."""
    quiet = {"level": "CRITICAL", "handlers": [], "propagate": False}
    ours = {"handlers": [], "propagate": True}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "lines": {"()": f"{__name__}.Lines"},
            "plain": {"()": f"{__name__}.Plain"},
        },
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "plain" if readable else "lines"},
        },
        "root": {"level": level, "handlers": ["stderr"]},
        "loggers": {
            # Django's own handlers would print and mail whole requests.
            "django": {**ours, "level": "INFO"},
            # Every scanner asks under names that are not ours; the access log has it as a 400.
            "django.security.DisallowedHost": quiet,
            # Its development server logs every address with its query; agentweaver.access says the same without.
            "django.server": quiet,
            # It repeats what a failed log-in posted, at every step.
            "axes": {**ours, "level": "WARNING"},
            "gunicorn.error": {**ours, "level": "INFO"},
            "gunicorn.access": quiet,
        },
    }
