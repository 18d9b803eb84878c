"""Hand-written trees as teams have them, and where the collected real ones are when they are there."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

from memory.mirror.reading.tree import SourceTree, read_zip

LEDGER = """\
# Decisions

## Active Decisions

### 2026-03-07T18:59:00Z: One harbour first (Ana)
**By:** Ana (Lead)
**Status:** ✅ APPROVED
**What:** No second harbour before spring.
**Why:** The crew is small.

---

### Type safety, strict mode
**Author:** Bo
**Why:** Guessing is slow.

### 2026-03-09: Charts live in `charts/`
**By:** Ana

```md
### 2026-01-01: not a heading
```

## Governance

- All meaningful changes require team consensus
"""

INBOX = """\
# Use tides from the almanac

**Author:** Bo
**Date:** 2026-04-01

The almanac is right, the app is not.
"""

CHARTER = "# Ana — Lead\n\nKeeps the course.\n"

HISTORY = """\
# Ana

## Core Context

Keel is in Go.

## Learnings

- Ropes shrink when wet.
- **Anchors:** check twice.
"""

NOW_MD = """\
---
updated_at: 2026-04-02T08:00:00Z
focus_area: The harbour wall
active_issues: ["#12", "#14"]
---

# What We're Focused On

The wall before the winter.
"""

SQUAD = {
    ".squad/decisions.md": LEDGER,
    ".squad/decisions/inbox/bo-tides.md": INBOX,
    ".squad/decisions/decisions.md": "# Decisions\n\n### 2025-01-01: An older one\n**By:** Ana\n\nOld.\n",
    ".squad/agents/Ana/charter.md": CHARTER,
    ".squad/agents/Ana/history.md": HISTORY,
    ".squad/agents/bo/charter.md": "# Bo — Navigator\n\nKnows the tides.\n",
    ".squad/identity/now.md": NOW_MD,
    ".squad/templates/history.md": "## Learnings\n\n- not a learning\n",
}
"""A small tree with every kind of file: 3 decisions, 1 entry, 3 memories, 2 charters, 1 session, 1 of a second ledger."""

CORPUS = Path(
    os.environ.get("AGENTWEAVER_CORPUS") or Path(__file__).resolve().parents[4] / "shared" / "corpus"
)


def corpus_trees() -> list[Path]:
    """The real trees, none when they are not there."""
    return sorted(path for path in CORPUS.iterdir() if path.is_dir()) if CORPUS.is_dir() else []


def as_zip(files: Mapping[str, str | bytes]) -> io.BytesIO:
    """A zip of `files`, ready to read."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    stream.seek(0)
    return stream


def as_tree(files: Mapping[str, str | bytes]) -> SourceTree:
    return read_zip(as_zip(files))


def write_tree(folder: Path, files: Mapping[str, str]) -> Path:
    """The files below `folder`, byte for byte."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    return folder
