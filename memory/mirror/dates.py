"""Dates and times as people write them in headings and labels (SPEC 8). What cannot be read is unknown, never guessed."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

_DAY = r"(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})"
_CLOCK = r"(?P<H>\d{2})[:-]?(?P<M>\d{2})(?:[:-]?(?P<S>\d{2})(?:\.\d{1,9})?)?"
_ZONE = r"(?P<zone>\s?(?:Z|UTC|GMT|[PMCE][SD]?T)\b|[+-]\d{2}[:-]?\d{2}(?!\d))"
STAMP = re.compile(
    rf"(?<![\d-]){_DAY}(?:(?:T{_CLOCK}|\ (?P<h2>\d{{2}}):(?P<m2>\d{{2}})(?::(?P<s2>\d{{2}}))?){_ZONE}?|\ ?[PMCE]T\b)?(?!\d)"
)
"""A date, with hyphens, and what follows of a time: `2026-03-07T18:59Z`, `2026-06-30T00-22-27Z`, `2026-03-07 07:51 UTC`."""

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}
_MONTH_FIRST = re.compile(r"\b([A-Za-z]{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})\b")
_DAY_FIRST = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\.? ([A-Za-z]{3,9})\.?,? (\d{4})\b")
_FIXED = {"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}


@dataclass(frozen=True)
class Stamp:
    """`raw` as written; `at` the moment in UTC, midnight for a bare date."""

    raw: str
    at: datetime


def find_stamp(text: str) -> Stamp | None:
    """The first date in `text`, or None. Months written as words are known too."""
    for match in STAMP.finditer(text):
        if stamp := stamp_of(match):
            return stamp
    return _worded(text)


def stamp_of(match: re.Match[str]) -> Stamp | None:
    """What a match of `STAMP` says; None for a day or an hour that does not exist. A time without a zone is UTC.

    `PT` and its like stand for two different offsets, so the date alone is used.
    """
    got = match.groupdict()
    offset = _offset((got["zone"] or "").strip())
    hour, minute, second = (
        int(got[long] or got[short] or 0) for long, short in (("H", "h2"), ("M", "m2"), ("S", "s2"))
    )
    try:
        day = datetime(int(got["y"]), int(got["m"]), int(got["d"]), tzinfo=UTC)
        if offset is None:
            return Stamp(match[0], day)
        local = day.replace(hour=hour, minute=minute, second=second, tzinfo=timezone(offset))
        return Stamp(match[0], local.astimezone(UTC))
    except (ValueError, OverflowError):
        return None


def _offset(zone: str) -> timedelta | None:
    if zone in ("", "Z", "UTC", "GMT"):
        return timedelta(0)
    if zone[0] in "+-":
        digits = re.sub(r"\D", "", zone)
        minutes = int(digits[:2]) * 60 + int(digits[2:])
        # A larger one is no offset; datetime would refuse it.
        return timedelta(minutes=-minutes if zone[0] == "-" else minutes) if minutes < 24 * 60 else None
    return timedelta(hours=_FIXED[zone]) if zone in _FIXED else None


def _worded(text: str) -> Stamp | None:
    for pattern, day, month in ((_MONTH_FIRST, 2, 1), (_DAY_FIRST, 1, 2)):
        for match in pattern.finditer(text):
            number = _MONTHS.get(match[month].lower())
            try:
                if number:
                    return Stamp(match[0], datetime(int(match[3]), number, int(match[day]), tzinfo=UTC))
            except ValueError:
                continue
    return None


@dataclass(frozen=True)
class DatedHeading:
    """A heading text taken apart. `place` is `start`, `end`, `middle` or empty; `bare` says that nothing but the date is there.

    `title` has the date taken off when it stands at an end; `aside` is what stood in its brackets before a comma.
    """

    title: str
    stamp: Stamp | None
    place: str = ""
    bare: bool = False
    aside: str = ""


_START = re.compile(rf"[\s\[(*_`~📌📅🗓️]*{STAMP.pattern}")
_AFTER = re.compile(
    r"[\s\])*_`~]*(?:(?:–|—|-|to)\s*\d{4}-\d{2}-\d{2}(?:T[\d:-]+Z?)?)?[\s\])*_`~]*[:—–|,.\-]*\s*"
)
_END_BRACKET = re.compile(r"\s*[(\[]([^()\[\]]*)[)\]]\s*$")
MAX_HEADING = 1_000
"""Characters. In a longer heading a date is looked for at the start only."""


def split_date(text: str) -> DatedHeading:
    """Takes the date off the start or the end of a heading."""
    match = _START.match(text)
    stamp = stamp_of(match) if match else None
    if match is None or stamp is None:
        return _dated_end(text)
    after = _AFTER.match(text, match.end())
    rest = text[after.end() if after else match.end() :].strip()
    raw = text[match.start("y") : match.end()]
    return DatedHeading(rest, Stamp(raw, stamp.at), "start", not re.search(r"\w", rest))


def _dated_end(text: str) -> DatedHeading:
    if len(text) > MAX_HEADING:
        return DatedHeading(text, None)
    bracket = _END_BRACKET.search(text)
    if bracket and (stamp := find_stamp(bracket[1])):
        before, comma, _ = bracket[1].partition(",")
        aside = before.strip() if comma and stamp.raw not in before else ""
        return DatedHeading(text[: bracket.start()].strip() or text, stamp, "end", False, aside)
    stamp = find_stamp(text)
    if stamp is None:
        return DatedHeading(text, None)
    if text.endswith(stamp.raw):
        return DatedHeading(text[: -len(stamp.raw)].rstrip(" —–|,:-") or text, stamp, "end")
    return DatedHeading(text, stamp, "middle")
