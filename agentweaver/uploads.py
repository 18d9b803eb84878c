"""How large a request with files may be (SPEC 10, request size limits): asked before a byte of it is read."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadhandler import FileUploadHandler


class BoundedUploads(FileUploadHandler):
    """Refuses a body over MAX_UPLOAD_BYTES; the handlers after it keep small files in memory and put others on the disk."""

    def handle_raw_input(
        self,
        input_data: Any,
        META: Any,  # noqa: N803 - Django's own name for it
        content_length: int,
        boundary: Any,
        encoding: Any = None,
    ) -> None:
        if content_length > settings.MAX_UPLOAD_BYTES:
            raise RequestDataTooBig(f"At most {settings.MAX_UPLOAD_BYTES} bytes.")

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        return raw_data

    def file_complete(self, file_size: int) -> None:
        return None
