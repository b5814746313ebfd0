# Thin names for the project's commands. A fresh machine needs Python >= 3.10, pip, make and git; the rest is made here.
PYTHON ?= python3
VENV := .venv
QUIETLY := -m pip --disable-pip-version-check --no-input -qq
# Beside .venv there is an environment .venv-NAME for each tests/environments/NAME.txt. In those files that have a line
# "# tests: PATHS", that line names the tests that are run there too.
OTHERS := $(patsubst tests/environments/%.txt,.venv-%,$(wildcard tests/environments/*.txt))
# Needed by "make bench" alone.
MEASURED := .venv-smdebug-tensorflow
TESTED := $(patsubst tests/environments/%.txt,.venv-%,$(shell grep -l '^. tests: ' tests/environments/*.txt))
# Those that are not there yet stay empty.
named = "$$(cat .venv-$(1)/.python 2>/dev/null)"
INTERPRETERS = SMDEBUG_PYTHON=$(call named,smdebug) OLDEST_PYTHON=$(call named,oldest) \
  SMDEBUG_MXNET_PYTHON=$(call named,smdebug-mxnet) MXNET_PYTHON=$(call named,mxnet) \
  TENSORBOARD_PYTHON=$(call named,tensorboard)
SOURCES := $(shell find smd_agent -name '*.py' -o -name '*.c' -o -path '*/static/*' -o -name py.typed) \
  $(wildcard smd_agent.pth smd_agent.start) sitecustomize.py hatch_build.py pyproject.toml README.md LICENSE
DEMO_RUN := smd_runs/digits
comma := ,
# Per cent of the lines and branches that the unit tests reach.
COVERED := 50
# Environments made at a time, and processes that tests are spread over: a file's tests, which share what they look at, are
# run by one of them.
JOBS ?= 2
WORKERS ?= auto
SPREAD = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# The slowest tests are shown, so that nobody need guess what to make faster.
SLOWEST := --durations=25 --durations-min=1

# What the tests of each environment took, by files.
RESULTS := build/test-results

.PHONY: help setup environments demo test test-all durations lint coverage changelog bench scenarios robustness accuracy docs dist check clean
.SILENT:

help:
	echo 'make demo    train the example under the agent, list and show what was saved; then one with a fault, and its report'
	echo 'make test    the quick tests, against the installed wheel, in about nine minutes'
	echo 'make test-all  all tests and a build of the documentation; with the oldest frameworks and the real smdebug too'
	echo 'make durations  note what each file of the tests took in the last "make test-all", for the order of the next'
	echo 'make lint    ruff, mypy, import floors, workflows'
	echo 'make coverage  lines and branches that the unit tests reach; fewer than $(COVERED) of a hundred fail'
	echo 'make changelog  make the fragments of changelog.d a section of CHANGELOG.md'
	echo 'make bench   what it costs, as a table'
	echo 'make scenarios  write docs/pytorch-scenarios.md: what is captured of each, and what it costs'
	echo 'make robustness  write docs/robustness.md: harmed files, killed trainings, failing disks, and how they ended'
	echo 'make accuracy  write docs/rules-measured.md: trainings without and with a fault, and what the rules say of them'
	echo 'make docs    build the documentation into build/docs; broken links and missing pages fail'
	echo 'make dist    build the sdist and the wheel into dist, those of the import name smdebug into dist/smdebug'
	echo 'make check   lint and test-all'
	echo 'make setup   only make the environments'
	echo 'make clean   remove the environments and the demo runs'

# Two pips at a time in one environment see each other's half-written packages: what goes into .venv comes one by one.
setup:
	$(MAKE) --no-print-directory --jobs $(JOBS) environments
	$(MAKE) --no-print-directory $(VENV)/.lint

environments: $(VENV)/.test $(OTHERS:=/.python) $(TESTED:=/.wheel)

demo: $(VENV)/.demo
	rm -rf $(DEMO_RUN)
	$(VENV)/bin/python -m smd_agent --out $(DEMO_RUN) --save gradients --every 20 examples/pytorch_digits.py --epochs 3
	echo; echo '$$ python -m smd_agent ls $(DEMO_RUN)'
	$(VENV)/bin/python -m smd_agent ls $(DEMO_RUN)
	echo; echo '$$ python -m smd_agent show $(DEMO_RUN)'
	$(VENV)/bin/python -m smd_agent show $(DEMO_RUN)
	echo; echo 'A learning rate that is too high:'
	rm -rf $(DEMO_RUN)-sick
	echo '$$ python -m smd_agent --out $(DEMO_RUN)-sick --every 2 examples/pytorch_digits.py --epochs 1 --lr 1e6'
	$(VENV)/bin/python -m smd_agent --out $(DEMO_RUN)-sick --every 2 examples/pytorch_digits.py --epochs 1 --lr 1e6
	echo; echo '$$ python -m smd_agent report $(DEMO_RUN)-sick -o $(DEMO_RUN)-sick.html'
	$(VENV)/bin/python -m smd_agent report $(DEMO_RUN)-sick -o $(DEMO_RUN)-sick.html
	echo; echo 'The same with XGBoost: $(VENV)/bin/python -m smd_agent --out smd_runs/cancer --save all --every 20 examples/xgboost_cancer.py'
	echo 'And with MXNet, after "make setup": .venv-mxnet/bin/python -m smd_agent --out smd_runs/gluon --every 20 examples/gluon_digits.py'

# The script pytest, not "python -m pytest": the latter would put the source tree before the installed wheel. Tests are
# spread over the processors; WORKERS=0 keeps them in one process. What ARGS names by its path is run, thorough or not.
test: $(VENV)/.test
	$(INTERPRETERS) $(VENV)/bin/pytest $(SPREAD) $(if $(filter tests%,$(ARGS)),,-m 'not thorough') $(ARGS)

# Environments are made side by side. Where ARGS picks none of an environment's tests, pytest ends with 5.
test-all:
	$(MAKE) --no-print-directory --jobs $(JOBS) $(VENV)/.test \
	  $(patsubst %,%/.python,$(filter-out $(MEASURED),$(OTHERS))) $(TESTED:=/.wheel)
	rm -rf $(RESULTS)
	for venv in $(VENV) $(TESTED); do \
	  test -x $$venv/bin/pytest || continue; \
	  echo "make: tests in $$venv"; \
	  paths=tests; list="tests/environments/$${venv#.venv-}.txt"; \
	  test ! -e "$$list" || paths="$$(sed -n 's/^# tests: //p' "$$list")"; \
	  $(INTERPRETERS) $$venv/bin/pytest -o testpaths="$$paths" $(SPREAD) $(SLOWEST) \
	    -o junit_family=xunit1 --junitxml=$(RESULTS)/$${venv#.}.xml $(ARGS) \
	    $(if $(ARGS),|| test $$? = 5) || exit 1; \
	done

durations:
	$(VENV)/bin/python tests/durations.py $(RESULTS)/*.xml

lint: $(VENV)/.lint
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo
	$(VENV)/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(VENV)/bin/zizmor --offline --quiet .github

# Of what needs no framework; the tests of frameworks run in processes of their own.
coverage: $(VENV)/.test
	$(VENV)/bin/coverage run -m pytest -q -p no:randomly tests/unit $(ARGS)
	$(VENV)/bin/coverage report --fail-under $(COVERED)

changelog: $(VENV)/.dist
	$(VENV)/bin/towncrier build --yes --version "$$(sed -n 's/^__version__ = "\(.*\)"/\1/p' smd_agent/__init__.py)"

bench: $(VENV)/.demo .venv-smdebug/.python .venv-oldest/.wheel .venv-smdebug-mxnet/.python .venv-mxnet/.wheel .venv-tensorboard/.python \
  $(MEASURED:=/.python)
	$(INTERPRETERS) SMDEBUG_TENSORFLOW_PYTHON="$$(cat $(MEASURED)/.python)" $(VENV)/bin/python -m benchmarks $(ARGS)

scenarios: $(VENV)/.demo
	$(VENV)/bin/python -W ignore -m benchmarks.torch_scenarios $(ARGS) docs/pytorch-scenarios.md

# What is installed is what is put through it.
robustness: $(VENV)/.demo .venv-mxnet/.wheel
	export $(INTERPRETERS) && cd tests && $(CURDIR)/$(VENV)/bin/python -m robustness $(ARGS) --page $(CURDIR)/docs/robustness.md

# The scripts of a framework are run where it is; without MXNet the page keeps what it has of Gluon.
# ARGS='--every 0' measures the default launch alone, and the page keeps what it has of the other.
accuracy: $(VENV)/.demo .venv-mxnet/.wheel
	export $(INTERPRETERS) && cd tests && $(CURDIR)/$(VENV)/bin/python -m accuracy $(ARGS) --page $(CURDIR)/docs/rules-measured.md

# -W ends with an error after the first warning was printed and all others too; -n warns of names that are nowhere, -E reads
# all pages again: parts of them are made from the sources.
docs: $(VENV)/.docs
	$(VENV)/bin/sphinx-build -W --keep-going -n -E -q -b html docs build/docs
	echo 'make: the site is build/docs/index.html'

# The import name smdebug has a folder of its own: who installs dist/*.whl does not ask for it, and may have that library.
dist: $(VENV)/.dist
	rm -rf dist
	$(VENV)/bin/python -m build --outdir dist
	$(VENV)/bin/python -m build --outdir dist/smdebug distributions/smdebug

check: lint test-all

clean:
	rm -rf $(VENV) $(OTHERS) smd_runs build dist

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 10) else "make: Python 3.10 or newer is needed, name one with PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

# pip installs the tree as a wheel (never editable): what is tested is what a user gets. Made again when a source changes.
# The oldest pip that knows groups is asked for here, since the environment may be an older one.
$(VENV)/.%: $(SOURCES) | $(VENV)/bin/python
	echo 'make: installing smd-agent and the group $* into $(VENV)'
	$(VENV)/bin/python $(QUIETLY) install 'pip>=25.1'
	$(VENV)/bin/python $(QUIETLY) install --group $* '.$(if $(filter test,$*),[analysis$(comma)dask$(comma)parquet$(comma)plots$(comma)stores])'
	touch $@

# .python names the interpreter. These libraries run on Python 3.10 and 3.11 only; without one of them .python stays empty
# and what needs it is skipped.
.PRECIOUS: .venv-%/.python
.venv-%/.python: tests/environments/%.txt
	rm -rf $(@D)
	mkdir $(@D)
	for python in $(PYTHON) python3.11 python3.10 python3; do \
	  $$python -c 'import sys, venv; sys.exit(sys.version_info[:2] not in ((3, 10), (3, 11)))' 2>/dev/null || continue; \
	  echo "make: installing $< into $(@D)"; \
	  $$python -m venv $(@D) && \
	  $(@D)/bin/python $(QUIETLY) install -r $< && \
	  echo "$(CURDIR)/$(@D)/bin/python" > $@; exit $$?; \
	done; \
	echo 'make: no Python 3.10 or 3.11 found, the tests that need $(@D) will be skipped' >&2; : > $@

.venv-%/.wheel: .venv-%/.python $(SOURCES)
	if test -s $<; then \
	  echo 'make: installing smd-agent into $(@D)'; \
	  $(@D)/bin/python $(QUIETLY) install -r tests/environments/$*.txt .; \
	fi
	touch $@
