"""WSGI entry point."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentweaver.settings")

django_application = get_wsgi_application()

from agentweaver.operations.bodies import measured  # noqa: E402 - needs the settings

application = measured(django_application)
