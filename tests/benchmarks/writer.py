"""A writer in a process of its own: records memories, one change after the other, until its time is up.

Started by `test_writing` with its own DATABASE_URL: `python -m tests.benchmarks.writer SECONDS PROJECT…`, and goes round its projects.
It says when it is ready, waits for a line, and then says how many it wrote.
"""

from __future__ import annotations

import os
import sys
import time
from itertools import cycle


def main(seconds: float, slugs: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentweaver.settings")
    import django

    django.setup()
    from django.utils import timezone

    from memory.models import Project
    from memory.recording import record_memory
    from tests.benchmarks.load import OWNER

    projects = cycle(Project.objects.filter(slug__in=slugs).values_list("pk", flat=True))
    print("ready", flush=True)
    sys.stdin.readline()
    written, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        record_memory(
            project_id=next(projects), actor=OWNER, agent_name=f"w{os.getpid()}", type="learning",
            content=f"Note {written} of writer {os.getpid()}: the broker loses messages when it restarts.",
            now=timezone.now(),
        )  # fmt: skip
        written += 1
    print(written, flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
