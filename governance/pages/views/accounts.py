"""Logging in and out, and changing one's password: Django's own views, each with a policy."""

from django.contrib import messages
from django.contrib.auth import views as auth
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse, reverse_lazy
from django.views.decorators.http import require_safe

from governance.pages.forms.accounts import LogInForm
from governance.pages.views.access import open_page, signed_in_page

log_in = open_page(auth.LoginView.as_view(authentication_form=LogInForm, redirect_authenticated_user=True))
log_out = open_page(auth.LogoutView.as_view())
change_password = signed_in_page(
    auth.PasswordChangeView.as_view(success_url=reverse_lazy("password_changed"))
)


@require_safe
@signed_in_page
def password_changed(request: HttpRequest) -> HttpResponse:
    """Back home, with a sentence that says it worked."""
    messages.success(request, "Your password was changed. Other browsers were logged out.")
    return HttpResponseRedirect(reverse("governance:home"))
