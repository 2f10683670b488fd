# Every command a developer or CI needs. `make help` lists them; each sets up what it needs in .venv first.
# A stamp file in .venv stands for one locked set of packages, so a warm start costs a few stat calls.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory --no-builtin-rules

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
UV := $(BIN)/uv

# Trust what the machine trusts, as pip does; uv by itself would trust its own list only.
export UV_SYSTEM_CERTS ?= true

# `forbear` first: the others need it.
PACKAGES := packages/forbear $(filter-out packages/forbear,$(wildcard packages/*))
EDITABLE := $(foreach folder,$(PACKAGES) tools/testkit,--editable $(folder))

# mypy runs once for the root and once in each package: five folders are named `tests`.
CODE := tests benchmarks docs tools examples

# What people read. The reference pages are made of the tables, whose texts are code.
PROSE := $(wildcard packages/*/src packages/*/tests packages/*/*.md tools/*.py docs/*.md docs/use/*.md *.md) \
    tests tools/testkit examples docs/generate docs/site

# A developer who works with retries off still wants to see and test them.
unexport FORBEAR_DISABLED

# Without compiled files, every process that a test starts would compile all it imports.
unexport PYTHONDONTWRITEBYTECODE

# dev holds all of demo, so the demo runs in either; the smaller set is enough on a fresh machine.
DEV := $(VENV)/.dev
DEMO := $(if $(wildcard $(DEV)),$(DEV),$(VENV)/.demo)

# The oldest supported Python that works comes first: what passes there passes on the newer ones more often than not.
# Each candidate is run, since a shim may stand on PATH for a version that is not installed.
define CREATE_VENV
for candidate in $${PYTHON:-python3.11 python3.12 python3.13 python3.14 python3 python}; do \
    "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
    new_enough=$$candidate; \
    "$$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1 || continue; \
    exec "$$candidate" -m venv --clear $(VENV); \
done; \
if [ -n "$$new_enough" ]; then \
    echo "error: $$new_enough cannot create a virtual environment: its venv or ensurepip module is missing" >&2; \
    echo "hint: install it (Debian and Ubuntu: apt install python3-venv), or name another Python: make PYTHON=/path/to/python3" >&2; \
else \
    echo "error: forbear needs Python 3.11 or newer, and none of these is: $${PYTHON:-python3.11 to python3.14, python3, python}" >&2; \
    echo "hint: install one, or name it: make PYTHON=/path/to/python3" >&2; \
fi; \
exit 1
endef

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Another uv, another environment: nothing is left over from the one before.
$(UV): requirements/uv.txt
	@$(CREATE_VENV)
	@$(PY) -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@touch $@

# xds-protos overwrites files of googleapis-common-protos if it is unpacked later. So the latter comes again.
# --no-deps and --no-build-isolation: nothing is installed that is not in the locked set.
$(VENV)/.%: requirements/%.txt pyproject.toml $(wildcard packages/*/pyproject.toml) $(UV)
	@$(UV) pip install --quiet --python $(PY) --require-hashes -r requirements/$*.txt
	@$(UV) pip install --quiet --python $(PY) --reinstall-package googleapis-common-protos --require-hashes -r requirements/$*.txt
	@$(UV) pip install --quiet --python $(PY) --no-deps --no-build-isolation $(EDITABLE)
	@touch $@

.PHONY: venv
venv: $(DEV) ## set up .venv with everything `make check` needs

.PHONY: demo
demo: $(DEMO) ## one workload under random faults: no retries, blind ones, forbear; an upload killed and resumed; a fleet and its budget
	@$(PY) -m examples.demo

.PHONY: demo-audit
demo-audit: $(DEMO) ## a shop that charges twice: audit suspects it, a storm proves it, forbear mends it
	@$(PY) examples/shop/demo.py

.PHONY: test
test: $(DEV) ## run the tests
	@$(PY) -m pytest -n auto --dist loadfile

.PHONY: check
check: lint types layers coverage test ## everything CI asks for

.PHONY: lint
lint: $(DEV) ## ruff: rules and formatting; our own audit; plain English; reference pages up to date; .github and CITATION.cff
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/forbear audit --select all --fail-on note packages/*/src
	@$(PY) -m docs.generate --check
	@$(PY) tools/plain_english.py --hard $(PROSE)
	@$(SCHEMA).github-workflows .github/workflows/*.yml
	@$(SCHEMA).github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	@$(SCHEMA).github-issue-config .github/ISSUE_TEMPLATE/config.yml
	@$(SCHEMA).dependabot .github/dependabot.yml
	@$(SCHEMA).citation-file-format --default-filetype yaml CITATION.cff
	@$(BIN)/zizmor --quiet --offline --persona pedantic .

SCHEMA := $(BIN)/check-jsonschema --quiet --builtin-schema vendor

.PHONY: types
types: $(DEV) ## mypy --strict and basedpyright
	@$(BIN)/mypy $(CODE)
	@for folder in $(PACKAGES); do \
	    echo "$$folder:"; (cd $$folder && ../../$(BIN)/mypy --config-file ../../pyproject.toml src tests) || exit 1; \
	done
	@$(BIN)/basedpyright packages $(CODE)

.PHONY: layers
layers: $(DEV) ## import-linter: who may import whom
	@$(BIN)/lint-imports --no-logo

# Their own tests only: what another layer's tests happen to run does not count as tested.
.PHONY: coverage
coverage: $(DEV) ## branch coverage of core and http by their own tests: 100 %
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest --quiet -n 2 --dist loadfile packages/forbear/tests/core packages/forbear/tests/http packages/forbear/tests/text
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

.PHONY: bench
bench: $(DEV) ## measure against hand-written loops, other retry libraries and other tools for transfers
	@$(PY) -m benchmarks
	@$(PY) -m benchmarks transfers

.PHONY: docs
docs: $(DEV) ## run the examples in the documentation
	@$(PY) -m pytest tests/docs

.PHONY: reference
reference: $(DEV) ## make docs/reference from the tables and policies
	@$(PY) -m docs.generate

SITE := $(VENV)/.docs
CHECKERS := $(VENV)/.checkers

.PHONY: tables
tables: $(DEV) ## what changed in the newest models of AWS, and what our corrections of them miss
	@$(PY) -m tools.aws_tables

.PHONY: site
site: $(SITE) ## build the documentation as a site in build/site; a warning or a broken link fails
	@rm -rf build/site build/doctrees docs/reference/api
	@$(PY) -m docs.generate --api
	@$(BIN)/sphinx-build --quiet --nitpicky --fail-on-warning --keep-going -c docs/site -d build/doctrees . build/site
	@$(PY) -m docs.site.llms build/site
	@$(PY) -m docs.site build/site

.PHONY: site-look
site-look: site ## look at the site in a real browser: CHROMIUM=, one on PATH or from npm; pictures in build/site-look
	@$(PY) -m docs.site.look build/site build/site-look

.PHONY: unasync
unasync: $(DEV) ## make the sync modules from the async ones
	@$(PY) tools/unasync.py

.PHONY: soak
soak: $(DEV) $(SITE) ## the tests marked soak too, with many more generated examples
	@HYPOTHESIS_PROFILE=soak $(PY) -m pytest -n auto --dist loadfile -m "soak or not soak" -o hang_timeout=7200
	@$(MAKE) houses
	@$(MAKE) sdist-test
	@$(MAKE) lowest
	@$(MAKE) aioboto3
	@$(MAKE) clients
	@$(MAKE) moto
	@$(MAKE) checkers
	@$(MAKE) pythons

.PHONY: dist
dist: $(DEV) ## build the sdists and the wheels into dist/, check them, try each wheel in an environment of its own
	@$(PY) -m tools.dist

.PHONY: houses
houses: $(DEV) ## the tests of each package without its siblings; of the core with pytest and hypothesis alone
	@$(PY) -m tools.houses

.PHONY: sdist-test
sdist-test: $(DEV) ## the same, and the tests of each unpacked sdist with the wheels of all
	@$(PY) -m tools.dist --tests

.PHONY: lowest
lowest: $(DEV) ## the tests of every extra at the lowest versions it allows; of some: .venv/bin/python -m tools.lowest redis
	@$(PY) -m tools.lowest

.PHONY: aioboto3
aioboto3: $(DEV) ## the tests of aiobotocore in the version that aioboto3 allows, and programs of aioboto3
	@$(PY) -m tools.apart aioboto3

.PHONY: clients
clients: $(DEV) ## what functions show of each client's requests, at its newest and its lowest version; clients of Google
	@$(PY) -m tools.apart clients clients-lowest niquests niquests-lowest

.PHONY: moto
moto: $(DEV) ## calls and programs of boto3 on moto, which keeps the state of AWS
	@$(PY) -m tools.apart moto

.PHONY: checkers
checkers: $(CHECKERS) ## pyrefly and ty on the types that users see, beside mypy and basedpyright in `make types`
	@$(PY) -m tools.checkers

.PHONY: pythons
pythons: $(DEV) ## the tests on every Python of this machine, 3.11 to 3.14; without the global lock a sample of them
	@$(PY) -m tools.pythons

.PHONY: waits
waits: $(DEV) ## measure how long the export targets wait, and write the tables in docs/export.md
	@FORBEAR_WAITS=write $(PY) -m pytest -m soak tests/docs/test_measured_waits.py -o hang_timeout=7200
	@$(PY) -m docs.generate

.PHONY: sdk-repeats
sdk-repeats: $(DEV) ## measure what client libraries execute twice by default, and write docs/what-sdks-repeat.md
	@$(PY) -m tools.sdk_repeats
	@$(PY) -m docs.generate

.PHONY: fleet
fleet: $(DEV) ## simulate the shipped policies and the gallery, and write their figures and the pictures in docs/fleet.md
	@$(PY) -m docs.generate.fleet
	@$(PY) -m docs.generate

.PHONY: mutants
mutants: $(DEV) ## mutation testing of core, http, text, run and shared_budget
	@cd packages/forbear && ../../$(BIN)/mutmut run && ../../$(BIN)/mutmut results

# No index, no local setting and no path of this machine may reach the lock files.
COMPILE := env -u UV_INDEX -u UV_DEFAULT_INDEX -u UV_INDEX_URL -u UV_EXTRA_INDEX_URL -u UV_FIND_LINKS \
    $(UV) pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
    --no-header --no-emit-index-url --no-emit-find-links --upgrade

.PHONY: lock
lock: $(UV) ## bring requirements/*.txt up to date with requirements/*.in
	@$(COMPILE) requirements/uv.in -o requirements/uv.txt
	@$(COMPILE) requirements/demo.in -o requirements/demo.txt
	@$(COMPILE) requirements/dev.in -c requirements/demo.txt -o requirements/dev.txt
	@$(COMPILE) requirements/aioboto3.in -o requirements/aioboto3.txt
	@$(COMPILE) requirements/clients.in -o requirements/clients.txt
	@$(COMPILE) requirements/clients-lowest.in -o requirements/clients-lowest.txt
	@$(COMPILE) requirements/moto.in -c requirements/dev.txt -o requirements/moto.txt
	@$(COMPILE) requirements/niquests.in -o requirements/niquests.txt
	@$(COMPILE) requirements/niquests-lowest.in -o requirements/niquests-lowest.txt
	@$(COMPILE) requirements/docs.in -c requirements/dev.txt -o requirements/docs.txt
	@$(COMPILE) requirements/checkers.in -c requirements/dev.txt -o requirements/checkers.txt

.PHONY: clean
clean: ## remove .venv and everything generated
	@rm -rf $(VENV) .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist packages/*/mutants packages/*/dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
