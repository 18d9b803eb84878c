"""File names of the mirror (SPEC 8): no text of an agent is ever a path.

`safe_names` makes file names of agents and slugs; `checked_path` is the shape every path of the mirror must have, on any system.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator

from memory.errors import ExportFailed

MAX_NAME_BYTES = 120
"""Of a file name made of an agent's name, in UTF-8; file systems take 255."""
MAX_PATH_BYTES = 600

_KEPT = "_-.'()+@,"
_RESERVED = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)", re.IGNORECASE)
_TAKEN = frozenset({"readme"})
"""Names the importer reads as something else."""
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]')


def safe_names(keys: Iterable[str]) -> dict[str, str]:
    """A file name for each key: itself when it is harmless, else a stem of it and half a digest. No two are equal in any letter case.

    A name depends on its own key, never on its neighbours, unless two would meet.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    # Harmless keys first: an agent who is named like another one's digest keeps the name.
    for key in sorted(keys, key=lambda key: (not _is_harmless(key), key)):
        name = next(name for name in _candidates(key) if _folded(name) not in taken)
        taken.add(_folded(name))
        names[key] = name
    return names


def _candidates(key: str) -> Iterator[str]:
    if _is_harmless(key):
        yield key
    digest = hashlib.sha256(key.encode()).hexdigest()
    # Without dots: `con.x` would still be a device, `a.` would lose its end.
    kept = (character if _is_kept(character) and character != "." else "-" for character in key)
    stem = "".join(kept)[:40].strip("-_ ") or "name"
    for size in range(8, len(digest) + 1):
        yield f"{stem}-{digest[:size]}"


def _is_harmless(key: str) -> bool:
    return (
        all(_is_kept(character) or character == " " for character in key)
        and key == key.strip(" .-_")
        and len(key.encode()) <= MAX_NAME_BYTES
        and not _RESERVED.match(key)
        and key.casefold() not in _TAKEN
    )


def _is_kept(character: str) -> bool:
    return character in _KEPT or unicodedata.category(character)[0] in "LNM"


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def checked_path(path: str) -> list[str]:
    """The steps of a path of the mirror. Raises ExportFailed for one that could leave the folder or that some system cannot hold."""
    steps = path.split("/")
    good = len(path.encode()) <= MAX_PATH_BYTES and all(
        step not in ("", ".", "..") and not _FORBIDDEN.search(step) and not step.endswith((".", " "))
        and not _RESERVED.match(step)
        for step in steps
    )  # fmt: skip
    if not good:
        raise ExportFailed(f"{path[:120]!r} is not a safe path.")
    return steps
