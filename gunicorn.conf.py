"""gunicorn, as `gunicorn agentweaver.wsgi` finds it. The environment decides through agentweaver/settings.py, which also stops a start
that could not work here, in one place, before there is any worker. docs/operations.md explains the figures.
"""

import logging
import os
import shutil
import tempfile
from itertools import count
from logging.config import dictConfig

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentweaver.settings")

from django.conf import settings
from gunicorn import glogging

bind = settings.WEB["bind"]
workers = settings.WEB["workers"]
worker_class = "gthread"
threads = settings.WEB["threads"]
# A worker that gives no sign of life for so long is replaced.
timeout = settings.WEB["timeout"]
# What a stop or a restart leaves requests to finish.
graceful_timeout = settings.WEB["graceful_timeout"]
# Longer than proxies and clients keep an idle connection by default, so that it is they who close it.
keepalive = 75
# Memory that leaks anywhere is given back sooner or later, not by all workers at once.
max_requests = settings.WEB["max_requests"]
max_requests_jitter = max_requests // 10

# Longer than any address of ours with every filter set.
limit_request_line = 8190
limit_request_fields = 64
limit_request_field_size = 8190

# The heartbeat is a file; on a disk that stalls, workers would be killed for it.
worker_tmp_dir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
control_socket_disable = True
# Django decides whom to believe (TRUSTED_PROXIES); gunicorn believes nobody.
forwarded_allow_ips = ""

# agentweaver.access tells more, and no queries.
accesslog = None


class logger_class(glogging.Logger):  # noqa: N801 - the name is a setting's
    """gunicorn's own messages as lines like all others."""

    def setup(self, cfg):
        super().setup(cfg)
        dictConfig(settings.LOGGING)
        logging.captureWarnings(True)


# prometheus_client looks for the folder when it is imported, in the workers. A reload keeps it, another master has its own.
_OWNER = "AGENTWEAVER_METRICS_OF"
if os.environ.get(_OWNER) != str(os.getpid()):
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="agentweaver-metrics-")
    os.environ[_OWNER] = str(os.getpid())


def pre_fork(server, worker):
    """A worker counts in the files of its slot and its successor goes on there: one file for each process id would never end."""
    taken = {other.slot for other in server.WORKERS.values()}
    worker.slot = next(number for number in count() if number not in taken)


def post_fork(server, worker):
    from prometheus_client import values

    # Whatever tidies temporary folders must not keep a new worker from starting.
    os.makedirs(os.environ["PROMETHEUS_MULTIPROC_DIR"], exist_ok=True)  # noqa: PTH103
    values.ValueClass = values.MultiProcessValue(lambda: worker.slot)


def on_exit(server):
    shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)
