"""Bodies that come in chunks, without saying how long they are (SPEC 10, request size limits).

Django takes a body without Content-Length for an empty one. So it is read here first, to the end or one byte past the largest body that
any route takes, and then has a length like every other; who refuses it as too large, and how, stays one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from tempfile import SpooledTemporaryFile
from typing import Any

from django.conf import settings

Environ = dict[str, Any]
Application = Callable[[Environ, Any], Iterable[bytes]]

_PIECE = 65_536


def measured(application: Application) -> Application:
    """A WSGI application whose requests all have a Content-Length, where the server knows the end of a body by itself."""

    def wrapped(environ: Environ, start_response: Any) -> Iterable[bytes]:
        if environ.get("CONTENT_LENGTH") or not environ.get("wsgi.input_terminated"):
            return application(environ, start_response)
        with SpooledTemporaryFile(max_size=settings.FILE_UPLOAD_MAX_MEMORY_SIZE) as body:
            environ["CONTENT_LENGTH"] = str(_copy(environ["wsgi.input"], body))
            environ["wsgi.input"] = body
            return application(environ, start_response)

    return wrapped


def _copy(source: Any, body: Any) -> int:
    """Reads what comes, within the bound; returns how much that was."""
    left = max(settings.DATA_UPLOAD_MAX_MEMORY_SIZE, settings.MAX_UPLOAD_BYTES) + 1
    while left and (piece := source.read(min(left, _PIECE))):
        body.write(piece)
        left -= len(piece)
    body.seek(0, 2)
    size: int = body.tell()
    body.seek(0)
    return size
