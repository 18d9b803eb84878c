"""A form that is sent, one verb, and an answer that keeps what was typed: for pages whose form is the page (DESIGN, Views)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from django import forms
from django.http import HttpResponse

from governance.pages.forms.fields import add_refusal
from governance.pages.views.rows import sentence_for
from memory.errors import Conflict, ExportFailed, Invalid


class Again(Protocol):
    """Draws the page again with the form as it was sent."""

    def __call__(self, form: forms.Form, status: int) -> HttpResponse: ...


def attempt(form: forms.Form, verb: Callable[[], HttpResponse], again: Again) -> HttpResponse:
    """The verb's answer; 422 with what is wrong beside the fields, 409 with why somebody or something was first.

    Files that cannot be written answer 409 as well: the same form may be taken later.
    """
    if not form.is_valid():
        return again(form, 422)
    try:
        return verb()
    except Invalid as refusal:
        add_refusal(form, refusal)
        return again(form, 422)
    except Conflict as lost:
        form.add_error(None, sentence_for(lost))
        return again(form, 409)
    except ExportFailed as failure:
        form.add_error(None, failure.detail)
        return again(form, 409)
