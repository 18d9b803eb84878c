"""Trees made of a few files for the reader's tests, and where the real ones are."""

import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from memory.mirror.reading.report import TreeReading
from memory.mirror.reading.sources import DEFAULT_SOURCES
from memory.mirror.reading.squad import read_tree
from memory.mirror.reading.tree import read_zip

ROOT = Path(__file__).resolve().parents[3]
Content = str | bytes


def zipped(files: Mapping[str, Content]) -> io.BytesIO:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    stream.seek(0)
    return stream


def reading(files: Mapping[str, Content], sources=DEFAULT_SOURCES) -> TreeReading:
    """What is read of these files; names are relative to `.squad`."""
    return read_tree(
        read_zip(zipped({f".squad/{name}": content for name, content in files.items()})), sources
    )


def ledger(text: Content, **further: Content) -> TreeReading:
    return reading({"decisions.md": text, **further})


def beside(variable: str, name: str) -> Path:
    """A folder of real files: the environment names it, or it lies beside the checkout. Skips the test when it is not there."""
    folder = Path(os.environ.get(variable) or ROOT.parent / "shared" / name)
    if not folder.is_dir():
        pytest.skip(f"no {name}: set {variable}")
    return folder


def corpus() -> Path:
    return beside("AGENTWEAVER_CORPUS", "corpus")


def corpus_truth() -> Path:
    return beside("AGENTWEAVER_CORPUS_TRUTH", "corpus-truth")
