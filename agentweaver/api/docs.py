"""The OpenAPI schema and a page to read it, both public: they tell how to ask, and nothing that is stored (SPEC 7)."""

from __future__ import annotations

from csp.constants import UNSAFE_INLINE
from csp.decorators import csp_update
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView


class BearerOrSession(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How to prove who asks, for the schema."""

    target_class = "agentweaver.api.authentication.CredentialAuthentication"
    name = ["bearer", "session"]

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


schema = SpectacularAPIView.as_view(authentication_classes=[])

# Swagger UI writes style attributes. Its scripts are ours to serve, so scripts stay as strict as everywhere.
docs = csp_update({"style-src": [UNSAFE_INLINE]})(
    SpectacularSwaggerSplitView.as_view(url_name="api-schema", authentication_classes=[])
)
