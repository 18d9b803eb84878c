"""WSGI entry point."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentweaver.settings")

django_application = get_wsgi_application()

from agentweaver.operations.bodies import measured  # noqa: E402 - needs the settings

# Loading every view takes most of a second: not while the first caller waits.
get_resolver().url_patterns  # noqa: B018

application = measured(django_application)
