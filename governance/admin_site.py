"""The Django admin's door: one log-in for the whole product, and superusers alone behind it (SPEC 5 and 9)."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.admin import AdminSite
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.decorators import method_decorator


class SuperuserSite(AdminSite):
    """Rows of every project are seen here, so no lesser right opens it: grants exist on projects only."""

    site_header = "Agentweaver Memory"
    site_title = "Agentweaver Memory"
    index_title = "The whole schema"
    # What a project's pages show is reached from each row; a long list of tables beside every page is not needed.
    enable_nav_sidebar = False

    def has_permission(self, request: HttpRequest) -> bool:
        return request.user.is_active and getattr(request.user, "is_superuser", False)

    @method_decorator(login_not_required)
    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """The product's own log-in, which counts failed attempts; somebody signed in who may not enter is told so."""
        if request.user.is_authenticated and not self.has_permission(request):
            raise PermissionDenied
        there = request.GET.get(REDIRECT_FIELD_NAME) or reverse("admin:index")
        return redirect_to_login(there, settings.LOGIN_URL)
