"""The read replica, where there is one: what a compile may ask of it, and when it is left alone (SPEC 11).

Nothing is ever believed because a replica says so. Who asks, what they may do and the project's row with its epoch are read from the
primary; a replica gives the rows of one statement together with the epoch they are of, and the compiler takes them only when it is
the project's. One that lags, is down or is asked inside of a transaction costs a moment, never a wrong answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from django.db import DEFAULT_DB_ALIAS, Error, connection, connections

logger = logging.getLogger(__name__)

PRIMARY = DEFAULT_DB_ALIAS
REPLICA = "replica"
"""Its name in the settings; see DATABASE_REPLICA_URL."""

REST = 200
"""For how many compiles of this process one that failed is left alone: not every request should wait for it."""

R = TypeVar("R")

_resting = 0


def asked_first(read: Callable[[str], R | None]) -> R | None:
    """What `read` makes of the replica; None when there is none to be asked, it fails, or `read` does not take its answer."""
    global _resting  # noqa: PLW0603 - threads may miscount it, which harms nobody
    # A change that is not committed yet is on the primary alone.
    if REPLICA not in connections.settings or connection.in_atomic_block:
        return None
    if _resting > 0:
        _resting -= 1
        return None
    try:
        return read(REPLICA)
    except Error as failure:
        _resting = REST
        logger.warning("The replica failed and is left alone for %d compiles: %s", REST, failure)
        connections[REPLICA].close()
        return None
