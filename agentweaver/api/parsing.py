"""Reading JSON bodies strictly: UTF-8, one value per key, nothing that is not JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser


class StrictJSONParser(JSONParser):
    """JSON in UTF-8 whatever the charset says. A key given twice is refused: two readers could take it for two things."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        body = _bounded(stream)
        try:
            return json.loads(
                body.decode(), object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_int=_whole
            )
        except RecursionError as error:
            raise ParseError("It is nested too deeply.") from error
        except ValueError as error:
            raise ParseError(_readable(error)) from error


def _bounded(stream: Any) -> bytes:
    """The whole body. The REST framework reads past Django's limit, so it is asked for here. Raises RequestDataTooBig."""
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    body: bytes = stream.read(limit + 1)
    if len(body) > limit:
        raise RequestDataTooBig
    return body


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("A key is given twice.")
    return values


def _whole(digits: str) -> int:
    """Longer than any number of ours; reading one takes time that grows with its square."""
    if len(digits) > 100:
        raise ValueError("A number has too many digits.")
    return int(digits)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON.")


def _readable(error: ValueError) -> str:
    """What is wrong, without any of the text that was sent."""
    if isinstance(error, json.JSONDecodeError):
        return f"It is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
    if isinstance(error, UnicodeDecodeError):
        return "It is not UTF-8."
    return str(error)[:200]


def as_object(data: Any) -> Mapping[str, Any]:
    """A body that must be one JSON object. Raises ParseError."""
    if not isinstance(data, dict):
        raise ParseError("It must be a JSON object.")
    return data
