# Everything here runs from a clean checkout: Python 3.11 or newer, make and the package registries are enough.
# `make PYTHON=python3.12 test` takes another interpreter than the first one found.

PYTHON ?=
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.made-from-pyproject
CHECKED := $(wildcard browsermw tests fixtures benchmarks examples)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
export PIP_ROOT_USER_ACTION := ignore

.DEFAULT_GOAL := help
.PHONY: help demo test lint env browser clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

demo: browser ## Kill an agent half-way through a submit and watch it recover
	@$(BIN)/browsermw demo $(ARGS)

test: browser ## Run every test: everything else, the sync browser, the async browser
	@$(BIN)/python tests/run_suites.py $(ARGS)

lint: env ## Check the format, the lint rules and the types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(CHECKED)

env: $(STAMP) ## Make .venv with the package and its tools (again only when pyproject.toml changes)

browser: env ## Get a Chromium: the one that is there, else Playwright's, else apt's
	@$(BIN)/browsermw install-browser

clean: ## Remove .venv and what the tools left
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A candidate must run (a shim may not), be new enough, and be able to make an environment with pip in it.
$(STAMP): pyproject.toml
	@for candidate in $(or $(PYTHON),python3.13 python3.12 python3.11 python3); do \
	  command -v "$$candidate" >/dev/null 2>&1 || continue; \
	  "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
	  if ! "$$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1; then \
	    lacking="$$candidate"; continue; \
	  fi; \
	  found="$$candidate"; break; \
	done; \
	if [ -z "$$found" ]; then \
	  if [ -n "$$lacking" ]; then \
	    echo "$$lacking cannot make environments (Debian and Ubuntu: apt-get install $$lacking-venv)." >&2; \
	  else \
	    echo "No Python 3.11 or newer among: $(or $(PYTHON),python3.13 python3.12 python3.11 python3)." >&2; \
	  fi; \
	  echo "Install one, or name one: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; \
	  exit 1; \
	fi; \
	echo "Making $(VENV) with $$found ($$("$$found" --version))"; \
	"$$found" -m venv --clear $(VENV) || exit 1; \
	echo "Installing browsermw and its tools into $(VENV) (a minute or two)"; \
	$(BIN)/python -m pip install -qq -e '.[dev]' || exit 1; \
	touch $(STAMP)
