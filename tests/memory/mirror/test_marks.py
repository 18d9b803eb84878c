"""The marks of our own export (SPEC 8, B30): every text comes back byte for byte, edits by hand are noticed."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.mirror.marks import KINDS, FoundRecord, MarkedRecord, unwrap, wrap
from memory.mirror.reading.decoding import decode

AWKWARD = [
    "",
    "\n",
    "# Heading\n\n---\n\n## 2026-01-01: Another\n**By:** Eve",
    "---\nagent: eve\nslug: x\n---\n",
    "```\n### not closed",
    "<!-- not closed",
    "a\r\nb\rc\nd\r\r\n",
    "\r",
    "\ufeffstarts with a mark",
    "line\n\ufeffa mark inside",
    "🙂 שלום \u202e \u2028 \x85 \x0b \x1c",
    "**Rationale:** yes",
    "<!-- agentweaver:end 00000000000000000000000000000000 -->",
    'x --> -- -->\n<!-- agentweaver:record 00000000000000000000000000000000 {"v":1} -->',
    wrap(MarkedRecord("memory", 1, "inner", "why", {"a": 1}), "## inner"),
    " trailing spaces \n\t\n",
]
texts = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60),
    st.lists(
        st.sampled_from([*AWKWARD, "\r", "\n", "\r\n", "#", "-->", "--", "<!--", "```"]), max_size=6
    ).map("".join),
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | texts,
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)
records = st.builds(
    MarkedRecord,
    kind=st.sampled_from(sorted(KINDS)),
    id=st.none() | st.integers(1, 2**63 - 1),
    text=texts,
    rationale=st.none() | texts,
    data=st.dictionaries(texts, values, max_size=4),
)
heads = st.sampled_from(["", "## A title\n**By:** Ana\n", "<!-- agentweaver:text 0 -->", "```"])


def through_a_file(text: str) -> str:
    """What is read back: the bytes of a file with `\\n` alone."""
    assert "\r" not in text
    return decode(text.encode()).text


@given(
    st.lists(st.tuples(records, heads), max_size=4),
    st.sampled_from(["", "# Decisions\n\n", "```\n", "<!--\n"]),
)
def test_every_record_comes_back_byte_for_byte_whatever_stands_around_it(written, before):
    file = before + "\n".join(wrap(record, head) for record, head in written)
    found = unwrap(through_a_file(file)).found
    assert [item.record for item in found] == [record for record, _ in written]
    assert not any(item.edited or item.head_edited for item in found)


@given(records)
def test_a_wrapped_record_is_read_as_one_when_it_is_the_text_of_another(record):
    outer = MarkedRecord("decision", 7, wrap(record), None, {})
    assert [item.record for item in unwrap(wrap(outer)).found] == [outer]


@given(records)
def test_the_metadata_is_one_line_of_ascii_that_cannot_end_its_comment(record):
    line = wrap(record).split("\n")[0]
    inside = line.removeprefix("<!-- ").removesuffix(" -->")
    assert line.isascii()
    assert "--" not in inside
    assert ">" not in inside


@given(records)
def test_a_file_that_git_gave_crlf_still_comes_back(record):
    crlf = wrap(record).encode().replace(b"\n", b"\r\n")
    assert [item.record for item in unwrap(decode(crlf).text).found] == [record]


@given(records, texts)
def test_an_edit_by_hand_is_noticed_and_read_as_it_now_stands(record, text):
    if "\r" in text or text == record.text or "\x00" in text:
        return
    file = wrap(record)
    lines = file.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("<!-- agentweaver:text "))
    stop = (
        start
        + 1
        + len(unwrap(file).found[0].record.text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    )
    edited = unwrap("\n".join([*lines[: start + 1], text, *lines[stop:]])).found[0]
    assert edited.edited
    # Carriage returns of the old text may still fit the new lines; the words are those of the file.
    assert edited.record.text.replace("\r\n", "\n").replace("\r", "\n") == text
    assert edited.record.rationale == record.rationale


def test_changed_visible_lines_are_noticed():
    file = wrap(MarkedRecord("decision", 1, "text"), "## Title").replace("## Title", "## Another title")
    (found,) = unwrap(file).found
    assert (found.edited, found.head_edited, found.record.text) == (False, True, "text")


def test_the_lines_around_records_keep_their_numbers():
    file = "before\n" + wrap(MarkedRecord("memory", 3, "one\ntwo")) + "after"
    assert unwrap(file).rest == "before\n\n\n\n\n\nafter"
    assert unwrap(file).found[0] == FoundRecord(MarkedRecord("memory", 3, "one\ntwo"), 1, 6, "", False, False)


@pytest.mark.parametrize(
    "metadata",
    [
        "{}",
        "{not json}",
        '{"v":2,"kind":"decision","data":{}}',
        '{"v":1,"kind":"owner","data":{}}',
        '{"v":1,"kind":["decision"],"data":{}}',
        '{"v":1,"kind":"decision","data":[]}',
        '{"v":1,"kind":"decision","id":true,"data":{}}',
        '{"v":1,"kind":"decision","id":-1,"data":{}}',
        '{"v":1,"kind":"decision","id":' + "9" * 5000 + ',"data":{}}',
        '{"v":1,"kind":"decision","data":' + '{"a":' * 5000 + "1" + "}" * 5001 + "}",
    ],
)
def test_marks_with_bad_metadata_are_text(metadata):
    word = "0" * 32
    file = f"<!-- agentweaver:record {word} {metadata} -->\n<!-- agentweaver:text {word} -->\nx\n<!-- agentweaver:end {word} -->"
    unwrapped = unwrap(file)
    assert (unwrapped.found, unwrapped.rest, unwrapped.broken) == ((), file, (0,))


def test_a_mark_without_an_end_is_text():
    file = wrap(MarkedRecord("memory", 1, "x")).replace("agentweaver:end", "agentweaver:fin")
    assert (unwrap(file).found, unwrap(file).broken) == ((), (0,))


@pytest.mark.parametrize("runs", ["", "x", "1n", "9" * 7 + "n", [1], {"a": 1}, "1rn1"])
def test_line_breaks_that_do_not_fit_are_left_alone(runs):
    file = wrap(MarkedRecord("memory", 1, "a\r\nb\r\nc"))
    (found,) = unwrap(file.replace('"breaks":"2rn"', '"breaks":' + json.dumps(runs))).found
    assert (found.record.text, found.edited) == ("a\nb\nc", True)


@pytest.mark.parametrize("text", ["\x00", "\ud800"])
def test_what_no_row_can_hold_is_not_written(text):
    for record in (MarkedRecord("memory", 1, text), MarkedRecord("memory", 1, "", text)):
        with pytest.raises(ValueError, match="cannot be written"):
            wrap(record)


@given(
    st.lists(
        st.sampled_from(["<!-- agentweaver:record ", "0" * 32, " {", "}", " -->", "\n", "text", "end", "x"])
    ).map("".join)
)
@example("<!-- agentweaver:record " + "0" * 32 + " {} -->\n" * 3)
def test_no_text_makes_the_reader_fail(text):
    unwrapped = unwrap(text)
    assert len(unwrapped.rest.split("\n")) == len(text.split("\n"))
