"""An export in a process of its own, again and again with other files, until somebody kills it. Prints the number of each that is done.

`python -m tests.memory.mirror.exporter FOLDER FIRST`: no database, the swap alone, which is all of an export that touches files.
"""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path

PROJECT = "6f1c0d52-3f1b-4c58-9f0c-6a8c0b8e9d11"
AGENTS = 6


def export(folder: Path, number: int) -> None:
    """Files that differ from those of the export before: every ledger is new, some agents come, others go."""
    from memory.mirror.writing.folders import Folder
    from memory.mirror.writing.manifest import Listed, Manifest
    from memory.mirror.writing.rendering import MirrorFile
    from memory.mirror.writing.swapping import swap

    agents = {f".squad/agents/a{n}/history.md": f"{n}\n" for n in range(AGENTS) if (n + number) % 3}
    texts = {**agents, ".squad/decisions.md": f"# {number}\n" * 500, ".squad/identity/now.md": "The same.\n"}
    files = [MirrorFile(path, text.encode(), {}) for path, text in sorted(texts.items())]
    listed = tuple(Listed(file.path, file.sha256, len(file.data), {}) for file in files)
    with Folder(folder) as opened, opened.locked(10):
        swap(opened, files, Manifest(PROJECT, "harbour", number, "2026-01-01T00:00:00Z", listed))


def main(folder: str, first: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentweaver.settings")
    import django

    django.setup()
    for number in count(int(first)):
        export(Path(folder), number)
        os.write(1, f"{number}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
