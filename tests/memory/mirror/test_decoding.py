"""Bytes to text (SPEC 8, B33): never fails, and says what it changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.mirror.reading.decoding import TextNote, decode

TEXT = "# Títle\n\nOne.\nTwo 🙂.\n"


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r", b"\r\r\n"])
def test_any_line_end_with_or_without_a_bom_gives_the_same_text(bom, end):
    assert decode(bom + TEXT.encode().replace(b"\n", end)).text == TEXT


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_with_a_bom_is_read(encoding):
    decoded = decode(("\ufeff" + TEXT).encode(encoding))
    assert (decoded.text, decoded.notes) == (TEXT, (TextNote(1, "utf_16", "read as UTF-16"),))


def test_plain_text_needs_no_note():
    assert decode(TEXT.encode()).notes == ()


def test_what_was_changed_is_said_with_its_line():
    decoded = decode(b"\xef\xbb\xbfa\r\nb\x00\n\xff\xfe and \x07\n\xef\xbf\xbd\n")
    assert decoded.text == "a\nb�\n� and \x07\n�\n"
    assert decoded.notes == (
        TextNote(1, "bom_removed"),
        TextNote(1, "line_ends_changed", "1 CRLF, 3 LF became LF"),
        TextNote(4, "replacement_characters", "1 in line 4"),
        TextNote(3, "bad_bytes_replaced", "1 in line 3"),
        TextNote(2, "nul_replaced", "1 in line 2"),
        TextNote(3, "control_characters", "1 in line 3"),
    )


def test_a_lone_carriage_return_does_not_shift_the_lines_of_the_file():
    decoded = decode(b"one\rstill one\ntwo\nthree\rstill three\nfour")
    lines = decoded.text.split("\n")
    assert {text: decoded.file_line(number) for number, text in enumerate(lines, start=1)} == {
        "one": 1,
        "still one": 1,
        "two": 2,
        "three": 3,
        "still three": 3,
        "four": 4,
    }


@given(st.binary())
def test_no_bytes_fail_and_no_text_holds_what_a_database_refuses(data):
    text = decode(data).text
    assert "\r" not in text
    assert "\x00" not in text
    text.encode("utf-8")


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\x00")).filter(
        lambda t: t[:1] != "\ufeff"
    )
)
def test_a_text_of_ours_comes_back_as_it_was(text):
    assert decode(text.encode()).text == text
