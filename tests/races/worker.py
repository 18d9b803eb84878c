"""A contender in a process of its own: reads moves from standard input, one JSON line each, and answers each with a line.

Started by `arena` with its own DATABASE_URL; `at` is the moment everybody moves.
"""

from __future__ import annotations

import json
import os
import sys
import time


def say(line: object) -> None:
    """One line in one write: a killed process leaves whole lines only, as far as the pipe took them."""
    os.write(1, (json.dumps(line) + "\n").encode())


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentweaver.settings")
    import django

    django.setup()
    from django.db import connection

    from tests.races.moves import play

    connection.ensure_connection()
    say({"ready": os.getpid()})
    for line in sys.stdin:
        order = json.loads(line)
        time.sleep(max(0.0, order.get("at", 0.0) - time.time()))
        say(play(order["move"], order["with"], lambda done: say({"ack": done})))


if __name__ == "__main__":
    main()
