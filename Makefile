# Thin names for the project's commands. A fresh machine needs Python >= 3.10, pip, make and git; the rest is made here.
PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check --no-input -qq
SMDEBUG := .venv-smdebug
SMDEBUG_PACKAGES := smdebug==1.0.34 protobuf==3.20.3 'numpy<2' 'pandas<2.2' torch==2.13.0 requests psutil
SOURCES := $(shell find smd_agent -name '*.py' -o -name py.typed) $(wildcard smd_agent.pth smd_agent.start) sitecustomize.py pyproject.toml README.md
DEMO_RUN := smd_runs/digits

.PHONY: help setup demo test lint bench check clean
.SILENT:

help:
	echo 'make demo    train the example under the agent, then list and show what was saved'
	echo 'make test    all tests, against the installed wheel'
	echo 'make lint    ruff, mypy, import floors'
	echo 'make bench   what it costs, as a table'
	echo 'make check   lint and test'
	echo 'make setup   only make the environments'
	echo 'make clean   remove the environments and the demo runs'

setup: $(VENV)/.test $(VENV)/.lint $(SMDEBUG)/.done

demo: $(VENV)/.demo
	rm -rf $(DEMO_RUN)
	$(VENV)/bin/python -m smd_agent --out $(DEMO_RUN) --every 20 examples/pytorch_digits.py --epochs 3
	echo; echo '$$ python -m smd_agent ls $(DEMO_RUN)'
	$(VENV)/bin/python -m smd_agent ls $(DEMO_RUN)
	echo; echo "\$$ python -m smd_agent show $(DEMO_RUN) 'gradient/.*conv1.*' --mode train"
	$(VENV)/bin/python -m smd_agent show $(DEMO_RUN) 'gradient/.*conv1.*' --mode train

# The script pytest, not "python -m pytest": the latter would put the source tree before the installed wheel.
test: $(VENV)/.test $(SMDEBUG)/.done
	SMDEBUG_PYTHON="$$(cat $(SMDEBUG)/.done)" $(VENV)/bin/pytest $(ARGS)

lint: $(VENV)/.lint
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo

bench: $(VENV)/.demo $(SMDEBUG)/.done
	SMDEBUG_PYTHON="$$(cat $(SMDEBUG)/.done)" $(VENV)/bin/python -m benchmarks $(ARGS)

check: lint test

clean:
	rm -rf $(VENV) $(SMDEBUG) smd_runs build dist

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 10) else "make: Python 3.10 or newer is needed, name one with PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

# pip installs the tree as a wheel (never editable): what is tested is what a user gets. Made again when a source changes.
$(VENV)/.%: $(SOURCES) | $(VENV)/bin/python
	echo 'make: installing smd-agent[$*] into $(VENV)'
	$(PIP) install '.[$*]'
	touch $@

# The real smdebug, in its own environment, for the compatibility tests. It runs on Python 3.10 and 3.11 only; without one of
# them .done stays empty and those tests are skipped.
$(SMDEBUG)/.done:
	mkdir -p $(SMDEBUG)
	for python in $(PYTHON) python3.11 python3.10 python3; do \
	  $$python -c 'import sys, venv; sys.exit(sys.version_info[:2] not in ((3, 10), (3, 11)))' 2>/dev/null || continue; \
	  echo "make: installing smdebug 1.0.34 into $(SMDEBUG)"; \
	  $$python -m venv $(SMDEBUG) && \
	  $(SMDEBUG)/bin/python -m pip --disable-pip-version-check --no-input -qq install $(SMDEBUG_PACKAGES) && \
	  echo "$(CURDIR)/$(SMDEBUG)/bin/python" > $@; exit $$?; \
	done; \
	echo 'make: no Python 3.10 or 3.11 found, the tests against the real smdebug will be skipped' >&2; : > $@
