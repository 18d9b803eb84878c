"""Agents' names in paths: any spelling of them; what cannot be a name is nobody's (SPEC 3, Agent)."""

from memory.errors import NotFound
from memory.values import clean_name


def agent_name(given: str) -> str:
    """The cleaned name. Raises NotFound."""
    try:
        return clean_name(given)
    except ValueError as malformed:
        raise NotFound from malformed
