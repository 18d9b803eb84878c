"""Routes of the whole product."""

from django.contrib import admin
from django.urls import include, path

from agentweaver.operations import limits
from governance.pages.views import accounts

urlpatterns = [
    path("", include("governance.urls")),
    path("account/login", limits.log_ins(accounts.log_in), name="login"),
    path("account/logout", accounts.log_out, name="logout"),
    path("account/password", accounts.change_password, name="password_change"),
    path("account/password/changed", accounts.password_changed, name="password_changed"),
    path("api/", include("agentweaver.api.urls")),
    path("admin/", admin.site.urls),
]

handler404 = "agentweaver.middleware.no_such_address"
