"""The OpenAPI schema and a page to read it, both public: they tell how to ask, and nothing that is stored (SPEC 7)."""

from __future__ import annotations

from functools import cache
from typing import Any

from csp.constants import UNSAFE_INLINE
from csp.decorators import csp_update
from django.http import HttpResponse
from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.request import Request


class BearerOrSession(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How to prove who asks, for the schema."""

    target_class = "agentweaver.api.authentication.CredentialAuthentication"
    name = ["bearer", "session"]

    def get_security_requirement(self, auto_schema: object) -> list[dict[str, list[Any]]]:
        """Either of the two."""
        return [{name: []} for name in self.name]

    def get_security_definition(self, auto_schema: object) -> list[dict[str, str]]:
        return [
            {
                "type": "http", "scheme": "bearer",
                "description": "A personal token (`awp_…`) or the credential of a run (`awr_…`).",
            },
            {
                "type": "apiKey", "in": "cookie", "name": "sessionid",
                "description": "The browser session; changes need the CSRF token in `X-CSRFToken`.",
            },
        ]  # fmt: skip


class StrictBody(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """A body's schema says what the API does: a field it does not list is refused."""

    target_class = "agentweaver.api.fields.Body"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return {**schema, "additionalProperties": False}


class Schema(SpectacularAPIView):
    """The schema as YAML or JSON. Made once in a process: it is public and costs a second."""

    authentication_classes = []

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        renderer: Any = request.accepted_renderer
        return HttpResponse(_document(type(renderer)), content_type=renderer.media_type)  # type: ignore[arg-type]


@cache
def _document(renderer: type[Any]) -> bytes:
    written: bytes = renderer().render(document(), renderer_context={})
    return written


@cache
def document() -> dict[str, Any]:
    """The schema as a dictionary."""
    made: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return made


schema = Schema.as_view()

# Swagger UI writes style attributes. Its scripts are ours to serve, so scripts stay as strict as everywhere.
docs = csp_update({"style-src": [UNSAFE_INLINE]})(
    SpectacularSwaggerSplitView.as_view(url_name="api-schema", authentication_classes=[])
)
