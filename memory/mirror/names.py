"""Who wrote something: from what a label says to one agent (SPEC 3, Agent; SPEC 8). A proposal for the reviewer, never an authority."""

import re
from collections.abc import Iterable

from memory.values import agent_key, clean_name

UNKNOWN = "unknown"
"""The display author of a record that names nobody."""

_TEAM = (
    "coordinator",
    "squad",
    "squad coordinator",
    "squad-coordinator",
    "scribe",
    "ralph",
    "copilot",
    "owner",
    "user",
)
_LONGEST = 400
_ROLE = re.compile(r"\s*[(\[].*$", re.DOTALL)
_NEXT = re.compile(r"\s*(?:[,;&/|+]|\band\b|\bvia\b|→|\s[—–-]\s).*$", re.DOTALL)
_INBOX_SLUG = re.compile(r"([a-z0-9]+)(?:-[a-z0-9]+)+$", re.IGNORECASE)
_BRACKET = re.compile(r"\s*\(([^()]{1,80})\)\s*$")
_PART = re.compile(r"\s*(?:[,&/+]|\band\b|\bvia\b)\s*")


class Names:
    """The agents a tree has folders for, each in the spelling its charter uses."""

    def __init__(self, spellings: Iterable[str] = ()) -> None:
        self._spellings = {agent_key(name): name for name in spellings}

    def known(self, name: str) -> str | None:
        return self._spellings.get(agent_key(name))

    def is_author(self, text: str) -> bool:
        """Whether every part of `text` is an agent of the tree or a word for the team itself, as in `(Owner via Copilot)`."""
        parts = [part for part in _PART.split(text) if part]
        return bool(parts) and all(self.known(part) or part.lower() in _TEAM for part in parts)

    def agent(self, authors: str | None) -> str | None:
        """The agent an author label means: its first name without the role. None when no name can be made of it."""
        if not authors:
            return None
        bare = _NEXT.sub("", _ROLE.sub("", authors[:_LONGEST].strip().lstrip("@"))).strip(" *_`:@")
        try:
            name = clean_name(re.sub(r"[ \t]+", " ", bare))
        except ValueError:
            return None
        return self.known(name) or name

    def split_author(self, title: str) -> tuple[str, str | None]:
        """Takes a name in brackets off the end of a title: `Fix (Ana)`. Other brackets stay: `Fix (low, unfixed)`."""
        match = _BRACKET.search(title)
        if match is None:
            return title, None
        if self.is_author(match[1]):
            return title[: match.start()].strip() or title, match[1].strip()
        slug = _INBOX_SLUG.match(match[1].strip())
        # `(ana-api-001)` is the inbox file a record came from: its first word is the agent, the title keeps it.
        return title, self.known(slug[1]) if slug else None
