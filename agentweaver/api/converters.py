"""What stands in a path. Anything malformed is no route, so it answers like a row that does not exist."""

from __future__ import annotations

import uuid

from django.urls import register_converter


class RowId:
    """A row's id: a positive whole number that a database can hold."""

    regex = "[1-9][0-9]{0,17}"

    def to_python(self, value: str) -> int:
        return int(value)

    def to_url(self, value: int) -> str:
        return str(value)


class RunId:
    """A run's UUID, in either letter case."""

    regex = "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"

    def to_python(self, value: str) -> uuid.UUID:
        return uuid.UUID(value)

    def to_url(self, value: uuid.UUID) -> str:
        return str(value)


class Reference:
    """A project's UUID or slug."""

    regex = "[A-Za-z0-9-]{1,120}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(RowId, "row")
register_converter(RunId, "run")
register_converter(Reference, "project")
