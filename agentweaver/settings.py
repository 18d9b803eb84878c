"""Settings. Every read of the environment happens in this file and fails loudly; `.env.example` lists the variables."""

from pathlib import Path
from typing import Any

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from agentweaver.operations import logs

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()
env.read_env(BASE_DIR / ".env")

DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str("SECRET_KEY", default="only-for-debugging-never-in-production" if DEBUG else "")
if not SECRET_KEY:
    raise ImproperlyConfigured(
        "Set SECRET_KEY, or copy .env.example to .env and fill it in (`make install` does it for you)."
    )
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
HTTPS = env.bool("HTTPS", default=not DEBUG)
"""Whether browsers reach the service by https: cookies become secure-only, plain http is redirected, HSTS is sent."""
TRUSTED_PROXIES = env.list("TRUSTED_PROXIES", default=[])
"""Addresses or networks of our own proxies, or `unix`. What anyone else forwards is thrown away before it is read."""

INSTALLED_APPS = [
    "governance",
    "memory",
    "governance.apps.SuperuserAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "guardian",
    "axes",
    "django_htmx",
    "template_partials",
    "django_filters",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
]

MIDDLEWARE = [
    "agentweaver.operations.addresses.client_addresses",
    "agentweaver.middleware.request_ids",
    "agentweaver.operations.probes.probes",
    "agentweaver.operations.access.access_log",
    "agentweaver.middleware.api_problems",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "agentweaver.middleware.closed_features",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "agentweaver.middleware.private_pages",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "agentweaver.middleware.SignedIn",
    "agentweaver.middleware.reader_zone",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "agentweaver.urls"
WSGI_APPLICATION = "agentweaver.wsgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "libraries": {
                name: f"governance.pages.tags.{name}"
                for name in ("ledger_files", "ledger_links", "ledger_text")
            },
        },
    },
]

# Database


def database(config: dict[str, Any]) -> dict[str, Any]:
    """A database, SQLite or PostgreSQL, with the options it must have."""
    options = config.setdefault("OPTIONS", {})
    if config["ENGINE"].endswith("sqlite3"):
        # A transaction that reads first and writes later fails at once under load unless it begins IMMEDIATE; FULL makes a
        # commit durable before it is answered.
        options.update(
            transaction_mode="IMMEDIATE",
            timeout=env.float("SQLITE_TIMEOUT", default=30.0),
            init_command="PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;",
        )
        return config
    # A writer who waits longer gets an error that says so (503), as on SQLite.
    patience = env.float("DATABASE_LOCK_TIMEOUT", default=30.0)
    # Titles that share half their trigrams are worth comparing (governance.deciding.lookalikes); the default of 0.3 finds far more.
    asked = f"-c lock_timeout={patience * 1000:.0f} -c pg_trgm.similarity_threshold=0.5"
    options["options"] = f"{options.get('options', '')} {asked}".strip()
    if env.bool("DATABASE_PREPARED_STATEMENTS", default=True):
        # Beyond every count: what asks for it is prepared (`memory.statements`), and nothing else ever is.
        options["prepare_threshold"] = 2**31
    if pool_size := env.int("DATABASE_POOL_SIZE", default=0):
        options["pool"] = {"min_size": 1, "max_size": pool_size}
    else:
        config["CONN_MAX_AGE"] = env.int("DATABASE_CONN_MAX_AGE", default=60)
        config["CONN_HEALTH_CHECKS"] = True
    return config


def replica() -> dict[str, Any]:
    """A streaming replica of that PostgreSQL, which compiles may ask (`memory.replica`)."""
    config = database(env.db_url("DATABASE_REPLICA_URL"))
    if not config["ENGINE"].endswith("postgresql") or not DATABASES["default"]["ENGINE"].endswith(
        "postgresql"
    ):
        raise ImproperlyConfigured("DATABASE_REPLICA_URL and DATABASE_URL must both name a PostgreSQL.")
    # One that cannot be reached must not hold a request up: seconds to connect, milliseconds to answer a packet.
    config["OPTIONS"].update(connect_timeout=2, tcp_user_timeout=5000)
    return {**config, "TEST": {"MIRROR": "default"}}


DATABASES = {"default": database(env.db_url("DATABASE_URL", default=f"sqlite:///{BASE_DIR / 'db.sqlite3'}"))}
if env.str("DATABASE_REPLICA_URL", default=""):
    DATABASES["replica"] = replica()
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Who may sign in

AUTH_USER_MODEL = "governance.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
# Guardian's own backend stays out: nobody asks has_perm for objects, governance/people/policies.py reads the grant tables.
SILENCED_SYSTEM_CHECKS = ["guardian.W001"]
ANONYMOUS_USER_NAME = None
GUARDIAN_MONKEY_PATCH_USER = False
GUARDIAN_MONKEY_PATCH_GROUP = False
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "governance:home"
LOGOUT_REDIRECT_URL = "login"
SESSION_COOKIE_AGE = env.int("SESSION_COOKIE_AGE", default=60 * 60 * 12)

AXES_FAILURE_LIMIT = env.int("LOGIN_FAILURE_LIMIT", default=5)
AXES_COOLOFF_TIME = env.float("LOGIN_COOLOFF_HOURS", default=0.25)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_ENABLE_ADMIN = False  # governance/admin.py shows its tables
AXES_LOCKOUT_CALLABLE = "agentweaver.operations.limits.locked_out"
LOGIN_ATTEMPTS_PER_MINUTE = env.int("LOGIN_ATTEMPTS_PER_MINUTE", default=30)
"""How many log-ins one address may try, under whatever names; 0 means no limit."""

RUN_CREDENTIAL_HOURS = env.int("RUN_CREDENTIAL_HOURS", default=24)
"""How long a run's credential lives at most (SPEC 5)."""

# Times, languages, files

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "/static/"
STATIC_ROOT = env.path("STATIC_ROOT", default=str(BASE_DIR / "staticfiles"))
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}

AGENTWEAVER_WORKSPACE_ROOT = env.str("AGENTWEAVER_WORKSPACE_ROOT", default="")
"""Folder that holds every project's workspace; empty: no project has one, the mirror is a zip download only (SPEC 8)."""

# Security

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "object-src": [NONE],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", default=31_536_000) if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_HTTPONLY = True
# agentweaver.operations.addresses leaves the header only where a trusted proxy set it.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

DATA_UPLOAD_MAX_MEMORY_SIZE = env.int("MAX_BODY_BYTES", default=2_500_000)
MAX_UPLOAD_BYTES = env.int("MAX_UPLOAD_BYTES", default=32_000_000)
"""A request with files, such as a zip to be imported (SPEC 8); beyond 2.5 MB it waits on the disk, not in memory."""
UPLOADS_ROOT = env.str("UPLOADS_ROOT", default="")
"""Folder that keeps a zip between its dry run and its import; empty: one in the system's temporary folder (docs/files.md)."""
FILE_UPLOAD_HANDLERS = [
    "agentweaver.uploads.BoundedUploads",
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "django.core.files.uploadhandler.TemporaryFileUploadHandler",
]

# Operations

LOG_LEVEL = env.str("LOG_LEVEL", default="INFO").upper()
LOGGING = logs.configuration(readable=DEBUG, level=LOG_LEVEL)
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")
"""Who holds it may read /metrics; without one there is no such address."""
if METRICS_TOKEN and len(METRICS_TOKEN) < 20:
    raise ImproperlyConfigured("METRICS_TOKEN is too short to be a secret: take 20 characters or more.")

WEB = {
    "bind": env.str("WEB_BIND", default="127.0.0.1:8000"),
    "workers": env.int("WEB_CONCURRENCY", default=2),
    "threads": env.int("WEB_THREADS", default=4),
    "timeout": env.int("WEB_TIMEOUT", default=60),
    "graceful_timeout": env.int("WEB_GRACEFUL_TIMEOUT", default=30),
    "max_requests": env.int("WEB_MAX_REQUESTS", default=20_000),
}
"""What gunicorn.conf.py takes from the environment: every read of it stands in this file."""

# API

API_REQUESTS_PER_MINUTE = env.int("API_REQUESTS_PER_MINUTE", default=6000)
"""How much one person or run may ask of the API (SPEC 10); 0 means no limit."""
UNPROVEN_REQUESTS_PER_MINUTE = env.int("UNPROVEN_REQUESTS_PER_MINUTE", default=300)
"""How much one address may ask of the API without a credential, or with one that is refused; 0 means no limit."""
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        # One entry for each caller of the last two minutes; the default of 300 would forget counters under a flood.
        "OPTIONS": {"MAX_ENTRIES": 50_000},
    }
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["agentweaver.api.authentication.CredentialAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["agentweaver.api.permissions.DenyByDefault"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["agentweaver.api.parsing.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_CLASSES": ["agentweaver.api.throttling.PerCaller"],
    "EXCEPTION_HANDLER": "agentweaver.api.problems.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Agentweaver Memory",
    "DESCRIPTION": (
        "Governed memory for teams of agents. `{p}` is a project's UUID or slug. Every error is an"
        " application/problem+json document (RFC 9457) with a `code`; see docs/api.md."
    ),
    "VERSION": "1",
    "SCHEMA_PATH_PREFIX": "/api",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": False,
    "DISABLE_ERRORS_AND_WARNINGS": False,
    "ENUM_ADD_EXPLICIT_BLANK_NULL_CHOICE": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "PATH_CONVERTER_OVERRIDES": {
        "row": {"type": "integer", "minimum": 1},
        "run": {"type": "string", "format": "uuid"},
        "project": {"type": "string", "pattern": "^[A-Za-z0-9-]{1,120}$"},
    },
    "ENUM_NAME_OVERRIDES": {
        "MemoryType": "memory.enums.MemoryType",
        "DecisionType": "memory.enums.DecisionType",
        "EntryType": "memory.enums.EntryType",
        "Importance": "memory.enums.Importance",
        "TrustState": "memory.enums.TrustState",
        "TrustPolicy": "memory.enums.TrustPolicy",
        "Overflow": "memory.enums.Overflow",
        "SourceKind": "memory.enums.SourceKind",
        "DecisionStatus": "memory.enums.DecisionStatus",
        "EntryStatus": "memory.enums.EntryStatus",
        "RunStatus": "memory.enums.RunStatus",
        "RunRole": "memory.enums.RunRole",
        "MemberRole": "governance.people.policies.Role",
        "EndedStatus": ["completed", "failed", "cancelled"],
        "StepName": "governance.deciding.scribe.Step",
        "StepState": "governance.deciding.scribe.State",
        "RowKind": ["decision", "memory", "session"],
        "OmitReason": "memory.enums.OmitReason",
        "ImportPlace": ["workspace"],
        "FormFlag": ["true", "false"],
        "KeptReason": ["edited", "not_ours"],
    },
}
