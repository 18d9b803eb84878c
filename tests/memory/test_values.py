"""Names, slugs, tags and texts (SPEC 3 and 7)."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import Invalid
from memory.models.fields import join_tags, needle, split_tags
from memory.values import (
    Cleaner,
    agent_key,
    checked_text,
    clean_issues,
    clean_name,
    clean_reason,
    clean_session_id,
    clean_slug,
    clean_tags,
    clean_title,
    looks_like_uuid,
)

DECOMPOSED = unicodedata.normalize("NFD", "José")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ana", "ana "),
        ("Ana", "\tANA\n"),
        ("José", DECOMPOSED),
        ("JOSÉ", DECOMPOSED.lower()),
        ("Straße", "STRASSE"),
        ("Σίσυφος", "σίσυφοσ"),
        ("İpek", "i\u0307pek"),
        ("\N{ANGSTROM SIGN}sa", "åsa"),
    ],
)
def test_spellings_of_one_agent_have_one_key(one: str, other: str) -> None:
    assert agent_key(one) == agent_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Ana", "Anna"), ("Ana", "An a"), ("İpek", "ipek"), ("Ana", "Ana-2"), ("José", "Jose"), ("A%", "A_")],
)
def test_other_names_are_other_agents(one: str, other: str) -> None:
    assert agent_key(one) != agent_key(other)


@given(st.text(max_size=30))
def test_the_key_of_a_key_is_itself_and_every_normal_form_has_the_same(name: str) -> None:
    key = agent_key(name)
    assert agent_key(key) == key
    assert agent_key(unicodedata.normalize("NFD", name)) == key
    assert agent_key(unicodedata.normalize("NFC", name)) == key


@given(st.text(max_size=30))
def test_lower_case_and_trimming_never_make_another_agent(name: str) -> None:
    assert agent_key(f" {name}\n") == agent_key(name)
    assert agent_key(unicodedata.normalize("NFC", name).casefold()) == agent_key(name)


@pytest.mark.parametrize(
    "name", ["", "  ", "a/b", "a\nb", "a\x7fb", "a\u2028b", "a\x00", "x" * 101, ".", ".."]
)
def test_a_name_that_cannot_be_an_agents_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        clean_name(name)


def test_a_name_is_trimmed_and_otherwise_kept() -> None:
    assert clean_name(f"  {DECOMPOSED} ") == DECOMPOSED
    assert clean_name("x" * 100) == "x" * 100


def test_a_name_that_grows_beyond_its_column_when_folded_is_refused() -> None:
    with pytest.raises(ValueError, match="once case is folded"):
        clean_name("ß" * 51)


@pytest.mark.parametrize("slug", ["a", "use-postgres", "use-postgres--ana", "use-postgres--ana--2", "2026"])
def test_kebab_case_is_a_slug(slug: str) -> None:
    assert clean_slug(f" {slug}\n") == slug


@pytest.mark.parametrize(
    "slug",
    ["", " ", "Use-Postgres", "use_postgres", "use postgres", "-a", "a-", "a---b", "a/b", "../a", "é", "a.", "x" * 121,
     "a\x00", "a\nb", "٣"],
)  # fmt: skip
def test_anything_else_is_no_slug(slug: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        clean_slug(slug)


@pytest.mark.parametrize(
    ("given_tags", "kept"),
    [
        ("", []),
        (" , ,", []),
        ("Cross-Team, b ,b", ["cross-team", "b"]),
        ([" Cross-Team", "cross-team ", "B"], ["cross-team", "b"]),
        (("a%", "a_", "a\\"), ["a%", "a_", "a\\"]),
        (["É", "e\u0301"], ["é"]),
    ],
)
def test_tags_are_trimmed_lower_cased_and_never_repeated(
    given_tags: str | list[str], kept: list[str]
) -> None:
    assert clean_tags(given_tags) == kept


@pytest.mark.parametrize(
    "tags", [["a,b"], ["a\nb"], ["a\x00"], ["x" * 65], [f"t{n}" for n in range(21)], ["\ud800"], "a\tb"]
)
def test_a_tag_that_cannot_be_kept_whole_is_refused(tags: str | list[str]) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        clean_tags(tags)


def test_limits_of_tags_are_reached_but_not_passed() -> None:
    assert clean_tags(["x" * 64, *(f"t{n}" for n in range(19))])[0] == "x" * 64


TAG = st.text(min_size=1, max_size=8).filter(
    lambda text: bool(text.strip()) and not set(text) & set(",\x00") and text.isprintable()
)


@given(st.lists(TAG, max_size=8), TAG)
def test_a_stored_tag_is_found_whole_or_not_at_all(tags: list[str], wanted: str) -> None:
    kept, [wanted] = clean_tags(tags), clean_tags([wanted])
    assert split_tags(join_tags(kept)) == kept
    assert (needle(wanted) in join_tags(kept)) is (wanted in kept)
    assert clean_tags(kept) == kept


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "x" * 65_537])
def test_text_that_no_database_keeps_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        checked_text(text)


@pytest.mark.parametrize("text", ["", "  a \r\n b\t", "\u2028\u202e\x7f\x0b", "x" * 65_536, "🦊"])
def test_text_is_kept_as_it_came(text: str) -> None:
    assert checked_text(text) == text


@pytest.mark.parametrize("blank", ["", " \n\t", "\u3000"])
def test_white_space_alone_is_not_a_required_text(blank: str) -> None:
    for clean in (lambda text: checked_text(text, required=True), clean_title, clean_reason):
        with pytest.raises(ValueError, match="blank"):
            clean(blank)


def test_a_title_is_one_line_and_trimmed() -> None:
    assert clean_title("  A: b --- c ") == "A: b --- c"
    for title in ("a\nb", "a\u2029b", "a\x85b", "x" * 301):
        with pytest.raises(ValueError, match=r"\S"):
            clean_title(title)


def test_a_session_id_leaves_the_words_of_the_addresses_alone() -> None:
    assert clean_session_id(" 2026-12-01 Release ") == "2026-12-01 Release"
    for session_id in ("current", "a/b", "", "x" * 121, "a\nb"):
        with pytest.raises(ValueError, match=r"\S"):
            clean_session_id(session_id)


def test_issues_are_bounded_in_number_and_length() -> None:
    assert clean_issues(["#1", ""]) == ["#1", ""]
    for issues in (["x" * 501], ["a"] * 101, ["\x00"]):
        with pytest.raises(ValueError, match=r"\S"):
            clean_issues(issues)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("123e4567-e89b-12d3-a456-426614174000", True),
        ("123E4567E89B12D3A456426614174000", True),
        ("123e4567-e89b-12d3-a456-42661417400", False),
        ("lighthouse", False),
        ("123e4567-e89b-12d3-a456-426614174000-x", False),
    ],
)
def test_a_slug_that_looks_like_a_uuid_is_recognised(text: str, is_one: bool) -> None:
    assert looks_like_uuid(text) is is_one


def clean_both(title: str, slug: str, *, then: Exception | None = None) -> tuple[str, str]:
    with Cleaner() as clean:
        values = clean("title", clean_title, title), clean("slug", clean_slug, slug)
        if then:
            raise then
    return values


def test_all_wrong_fields_are_named_at_once() -> None:
    with pytest.raises(Invalid) as caught:
        clean_both("", "A B")
    assert sorted(caught.value.errors) == ["slug", "title"]
    assert caught.value.code == "invalid"
    assert clean_both(" T ", "a-b") == ("T", "a-b")


def test_another_failure_in_the_block_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        clean_both("", "a", then=ZeroDivisionError())
