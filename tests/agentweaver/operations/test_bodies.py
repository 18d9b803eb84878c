"""A body that does not say how long it is has the same bounds as one that does (SPEC 10)."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from typing import Any

import pytest
from django.test import Client

from agentweaver.operations.bodies import measured


def given(body: bytes, **environ: Any) -> tuple[str | None, bytes]:
    """The length and the body that the application behind it sees."""
    seen: list[tuple[str | None, bytes]] = []

    def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        seen.append((environ.get("CONTENT_LENGTH"), environ["wsgi.input"].read()))
        return []

    measured(application)({"wsgi.input": BytesIO(body), **environ}, None)
    return seen[0]


@pytest.fixture(autouse=True)
def bounds(settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE, settings.MAX_UPLOAD_BYTES, settings.FILE_UPLOAD_MAX_MEMORY_SIZE = (
        4,
        200_000,
        10,
    )


@pytest.mark.parametrize("size", [0, 1, 10, 11, 100_000, 200_000])
def test_a_body_within_the_bounds_gets_its_length(size: int) -> None:
    assert given(b"x" * size, **{"wsgi.input_terminated": True}) == (str(size), b"x" * size)


def test_a_body_beyond_them_is_cut_one_byte_past_the_largest_that_is_taken() -> None:
    assert given(b"x" * 500_000, **{"wsgi.input_terminated": True}) == ("200001", b"x" * 200_001)


def test_a_body_with_a_length_is_left_alone() -> None:
    assert given(b"abc", CONTENT_LENGTH="3", **{"wsgi.input_terminated": True}) == ("3", b"abc")


def test_where_the_server_does_not_know_the_end_nothing_is_read() -> None:
    """Reading would wait for ever."""
    assert given(b"abc") == (None, b"abc")


# Pages


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("&".join(f"f{number}=" for number in range(1_001)), "application/x-www-form-urlencoded"),
        ("username=" + "x" * 10_000, "application/x-www-form-urlencoded"),
        ("username=%ff%00&password=" + "%" * 500, "application/x-www-form-urlencoded"),
        ("no boundary", "multipart/form-data"),
        ("--x\r\nnonsense", "multipart/form-data; boundary=x"),
        ("".join(f'--x\r\nContent-Disposition: form-data; name="f{n}"\r\n\r\n1\r\n' for n in range(1_001)) + "--x--",
         "multipart/form-data; boundary=x"),
        ("".join(f'--x\r\nContent-Disposition: form-data; name="f{n}"; filename="a"\r\n\r\n1\r\n' for n in range(101)) + "--x--",
         "multipart/form-data; boundary=x"),
        ("{}", "application/json"),
        ("x", "text/plain; charset=nonsense"),
    ],
    ids=["fields", "size", "bytes", "no boundary", "cut off", "parts", "files", "json", "charset"],
)  # fmt: skip
@pytest.mark.parametrize("checked", [True, False], ids=["csrf", "no csrf"])
def test_no_form_is_an_error_of_ours(
    db: None, settings: Any, body: str, content_type: str, checked: bool
) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE, settings.MAX_UPLOAD_BYTES = 9_000, 200_000
    answer = Client(enforce_csrf_checks=checked).generic("POST", "/account/login", body, content_type)
    assert answer.status_code in ((400, 403) if checked else (200, 400))
    assert answer["Content-Type"].startswith("text/html")
