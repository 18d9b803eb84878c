# The one way in: `make` lists what there is.

PYTHON  ?= python3
VENV    ?= .venv
PORT    ?= 8000
# What pytest gets on top, e.g. make test ARGS="tests/memory -k envelope"
ARGS    ?=
# Test processes; 0 runs everything in one.
WORKERS ?= auto

BIN     := $(VENV)/bin
MANAGE  := $(BIN)/python manage.py
PIP     := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes
HTML     = $(shell find templates governance memory agentweaver -name '*.html' 2>/dev/null)

# The tests and the checks see these settings, whatever .env says.
AS_TESTED   := DEBUG=true SECRET_KEY=for-tests-only
AS_DEPLOYED := DEBUG=false SECRET_KEY=for-make-check-only-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJ \
               ALLOWED_HOSTS=memory.example DATABASE_URL=sqlite://:memory:

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo run test test-postgres check check-style check-types check-imports check-templates \
        check-django fmt bench torture lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- installing ---------------------------------------------------------------------------------------

install: $(VENV)/.dev .env ## the virtual environment with everything, from the hashed locks

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "Python 3.11 or newer is needed and '$(PYTHON)' is not that. Name another: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "'$(PYTHON)' cannot make virtual environments. On Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)

$(VENV)/.base: requirements/base.txt | $(BIN)/python
	$(PIP) -r $<
	@touch $@

$(VENV)/.dev: requirements/dev.txt | $(BIN)/python
	$(PIP) -r $<
	@touch $@ $(VENV)/.base

.env: | $(BIN)/python
	@umask 077 && KEY=$$($(BIN)/python -c 'import secrets; print(secrets.token_urlsafe(50))') && \
	    sed "s/^SECRET_KEY=.*/SECRET_KEY=$$KEY/" .env.example > $@

# --- running ------------------------------------------------------------------------------------------

demo: $(VENV)/.base .env ## a project full of examples, then the server on PORT (8000)
	$(MANAGE) migrate --no-input --verbosity 0
	@$(MANAGE) demo --address http://127.0.0.1:$(PORT)
	@echo "  The server runs until Ctrl-C."
	@# Its greeting goes, so that the log-in is the last thing on the screen; errors and requests are on standard error.
	@# The projects' workspaces are below ./exports, so that the mirror of files can be seen.
	@mkdir -p exports
	@AGENTWEAVER_WORKSPACE_ROOT=exports $(MANAGE) runserver --noreload 127.0.0.1:$(PORT) >/dev/null

run: $(VENV)/.base .env ## the server on PORT (8000), with what is in the database
	$(MANAGE) migrate --no-input --verbosity 0
	$(MANAGE) runserver 127.0.0.1:$(PORT)

# --- testing ------------------------------------------------------------------------------------------

# Browser tests are part of it where Chromium is installed and say so where they are skipped;
# AGENTWEAVER_REQUIRE_BROWSER=1 turns the skip into a failure.
test: install ## the tests, on SQLite or on what DATABASE_URL names
	$(AS_TESTED) $(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

test-postgres: install ## the tests, on a throw-away PostgreSQL
	.ci/postgres run $(MAKE) --no-print-directory test

# ARGS=--quick: small tables, in a minute, to see that it runs; its figures mean nothing.
bench: install ## measure on a throw-away PostgreSQL: a table beside the goals, and bench.json (docs/performance.md)
	$(AS_TESTED) .ci/postgres run $(BIN)/python -m pytest -m benchmark -p no:xdist -o faulthandler_timeout=0 -s tests/benchmarks $(ARGS)

torture: install ## the race and fault tests in their long form, on both databases
	$(AS_TESTED) AGENTWEAVER_TORTURE=1 $(BIN)/python -m pytest -m race -p no:xdist -s $(ARGS)
	$(AS_TESTED) AGENTWEAVER_TORTURE=1 .ci/postgres run $(BIN)/python -m pytest -m race -p no:xdist -s $(ARGS)

# --- reading the code ---------------------------------------------------------------------------------

check: check-style check-types check-imports check-templates check-django ## all that is not a test: style, types, layers, templates, Django (-k shows every finding)

check-style: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

check-types: install
	$(AS_TESTED) $(BIN)/mypy

check-imports: install
	$(BIN)/lint-imports

check-templates: install
	$(if $(HTML),$(BIN)/djade --target-version 5.2 --check $(HTML),@echo "no templates yet")
	$(if $(HTML),$(BIN)/djlint --lint $(HTML))

check-django: install
	$(AS_DEPLOYED) $(MANAGE) makemigrations --check --dry-run
	$(AS_DEPLOYED) $(MANAGE) check --deploy --fail-level WARNING
	$(AS_DEPLOYED) $(MANAGE) spectacular --validate --fail-on-warn --file /dev/null
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	    $(AS_DEPLOYED) STATIC_ROOT="$$folder" $(MANAGE) collectstatic --no-input --verbosity 0

fmt: install ## format code and templates, mend what can be mended
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(if $(HTML),$(BIN)/djade --target-version 5.2 $(HTML) || true)

# --- keeping ------------------------------------------------------------------------------------------

# For Python 3.11 and every newer one, whatever this one is. UPGRADE=--upgrade takes the newest versions.
COMPILE = UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile pyproject.toml --quiet $(UPGRADE) \
          --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url
lock: install ## remake requirements/*.txt from pyproject.toml
	$(COMPILE) --extra dev --output-file requirements/dev.txt
	$(COMPILE) --constraint requirements/dev.txt --output-file requirements/base.txt

clean: ## remove what was installed and cached; the database stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache staticfiles test-results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
