"""What a value may look like: names, slugs, tags, texts and their limits (SPEC 3 and 7).

Every verb cleans its input here, so the API, the pages, the admin, the commands and the importer agree. Text is stored as it
came; only titles, slugs, tags and names are trimmed.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Self, TypeVar, cast

from django.db.models import TextChoices

from memory.errors import Invalid

T = TypeVar("T")
V = TypeVar("V")
C = TypeVar("C", bound=TextChoices)

MAX_TEXT = 65_536
"""Characters of a content, rationale, summary, charter or serialized state."""
MAX_TITLE = 300
MAX_SLUG = 120
MAX_NAME = 100
MAX_REASON = 2_000
MAX_FOCUS = 2_000
MAX_SESSION_ID = 120
MAX_EXTERNAL_ID = 200
MAX_TAGS = 20
MAX_TAG = 64
MAX_ISSUES = 100
MAX_ISSUE = 500

CROSS_TEAM = "cross-team"

_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_SLUG = re.compile(r"[a-z0-9]+(?:--?[a-z0-9]+)*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def agent_key(name: str) -> str:
    """One identity per agent under trim, NFC and case folding (SPEC 3, Agent)."""
    folded = unicodedata.normalize("NFC", name.strip()).casefold()
    return unicodedata.normalize("NFC", folded)


def text_problem(value: str, limit: int) -> str | None:
    """Why `value` cannot be stored, or None: too long in characters, a NUL, or a lone surrogate."""
    if len(value) > limit:
        return f"At most {limit} characters; this has {len(value)}."
    if "\x00" in value:
        return "NUL characters are not allowed."
    if _SURROGATE.search(value):
        return "Lone surrogates are not allowed."
    return None


def checked_text(value: str, limit: int = MAX_TEXT, *, required: bool = False) -> str:
    """`value` unchanged; raises ValueError with what is wrong. `required` refuses text that is only white space."""
    if problem := text_problem(value, limit):
        raise ValueError(problem)
    if required and not value.strip():
        raise ValueError("This may not be blank.")
    return value


def clean_title(value: str, limit: int = MAX_TITLE, *, required: bool = True) -> str:
    """A title or another one-line value, trimmed. Raises ValueError."""
    title = checked_text(value.strip(), limit, required=required)
    if _CONTROL.search(title):
        raise ValueError("Control characters and line breaks are not allowed.")
    return title


def clean_name(value: str) -> str:
    """An agent's name, trimmed: 1 to 100 characters, no control characters, no `/`. Raises ValueError."""
    name = clean_title(value, MAX_NAME)
    if "/" in name:
        raise ValueError("A slash is not allowed.")
    if name in (".", ".."):
        raise ValueError("A name of dots only is not allowed.")
    if len(agent_key(name)) > MAX_NAME:
        raise ValueError(f"At most {MAX_NAME} characters once case is folded.")
    return name


def clean_slug(value: str) -> str:
    """A kebab-case slug, trimmed, at most 120 characters. Raises ValueError.

    Two hyphens may stand together: the product itself answers with `{slug}--{agent}` and must take that back.
    """
    slug = checked_text(value.strip(), MAX_SLUG, required=True)
    if not _SLUG.fullmatch(slug):
        raise ValueError("Use kebab-case: lower-case letters and digits with hyphens between them.")
    return slug


def looks_like_uuid(value: str) -> bool:
    """Whether `value` is a UUID with or without hyphens."""
    return _UUID.fullmatch(value) is not None


def clean_tags(value: str | Iterable[str]) -> list[str]:
    """Whole tags, trimmed, lower-cased, without repeats, in the order given. A string is split at commas.

    Raises ValueError: over 20 tags, a tag over 64 characters, a comma or control character inside a tag.
    """
    parts = value.split(",") if isinstance(value, str) else list(value)
    tags = list(dict.fromkeys(clean_tag(part) for part in parts if part.strip()))
    if len(tags) > MAX_TAGS:
        raise ValueError(f"At most {MAX_TAGS} tags; this has {len(tags)}.")
    return tags


def clean_tag(value: str) -> str:
    """One tag, trimmed and lower-cased. Raises ValueError."""
    tag = unicodedata.normalize("NFC", value.strip().lower())
    if problem := text_problem(tag, MAX_TAG):
        raise ValueError(problem)
    if "," in tag or _CONTROL.search(tag):
        raise ValueError("A tag holds no comma and no control character.")
    return tag


def one_of(choices: type[C]) -> Callable[[str], C]:
    """A cleaner for a closed list. Raises ValueError with the list."""

    def clean(value: str) -> C:
        if value not in choices.values:
            raise ValueError(f"Must be one of: {', '.join(choices.values)}.")
        return choices(value)

    return clean


def clean_reason(value: str) -> str:
    """Why a decision was taken: required, at most 2,000 characters. Raises ValueError."""
    return checked_text(value, MAX_REASON, required=True)


def clean_issues(value: Iterable[str]) -> list[str]:
    """A session's active issues: a list of one-line strings. Raises ValueError."""
    issues = [checked_text(issue, MAX_ISSUE) for issue in value]
    if len(issues) > MAX_ISSUES:
        raise ValueError(f"At most {MAX_ISSUES} issues; this has {len(issues)}.")
    return issues


def clean_session_id(value: str) -> str:
    """A session's id: one line, no `/`, and not `current`, which the API keeps for the open session. Raises ValueError."""
    session_id = clean_title(value, MAX_SESSION_ID)
    if "/" in session_id:
        raise ValueError("A slash is not allowed.")
    if session_id == "current":
        raise ValueError("`current` names the open session.")
    return session_id


class Cleaner:
    """Cleans several fields, then raises one `Invalid` that names all that are wrong.

    >>> with Cleaner() as clean:
    ...     title = clean("title", clean_title, "  A title ")
    """

    def __init__(self) -> None:
        self.errors: dict[str, list[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self.errors:
            raise Invalid(self.errors)

    def __call__(self, field: str, clean: Callable[[V], T], value: V) -> T:
        """The cleaned value; what is wrong is kept for the end of the block, where the result is never used."""
        try:
            return clean(value)
        except ValueError as problem:
            self.errors.setdefault(field, []).append(str(problem))
            return cast(T, value)
