# Everything a person or CI runs. Each target sets up what it needs; a second run installs nothing.
FOLDER ?= knowledge_base_seed
PORT ?= 8000
ARCHITECTURE ?= arm64

UV_VERSION := 0.13.9
SAM_VERSION := 1.170.0
PYTHONS ?= python3.13 python3.12 python3.11 python3
SUITABLE := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))

# An environment that is active in the shell would be the one that uv fills.
unexport VIRTUAL_ENV

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# -------------------------------------------------------------------------------- on this machine
# A stamp is younger than what it was made from and names the version and place that it is for
# (an environment does not survive a move); a failed or interrupted set-up leaves none.
PINS := pyproject.toml layers/dependencies/requirements.txt
PLACE := $(shell pwd -P | cksum | cut -d ' ' -f 1)
UV_STAMP := .uv-$(UV_VERSION)-$(PLACE)
SAM_STAMP := .venv-sam/.sam-$(SAM_VERSION)

.PHONY: run test lint
run: .venv/.local ## Start it here: make run [FOLDER=path] [PORT=8000]
	@.venv/bin/kb serve --folder "$(FOLDER)" --port "$(PORT)"

test: .venv/.dev ## Run the tests
	.venv/bin/pytest

lint: .venv/.dev ## Check style, format and types
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

.venv/.local: .venv/$(UV_STAMP) $(PINS)
	@.venv/bin/uv pip install --quiet --python .venv/bin/python -e '.[local]'
	@touch $@

.venv/.dev: .venv/$(UV_STAMP) $(PINS)
	@.venv/bin/uv pip install --quiet --python .venv/bin/python -e '.[local,dev]'
	@touch $@ .venv/.local

%/$(UV_STAMP):
	@for python in $(PYTHONS); do \
	  if $$python -c "$(SUITABLE)" >/dev/null 2>&1; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "Python 3.11 or newer with its venv module is needed; tried $(PYTHONS)." >&2; exit 1; \
	fi; \
	echo "Installing into $* with $$found: once, and only below this folder"; \
	$$found -m venv --clear $*
	@$*/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

# ---------------------------------------------------------------------------------------- for AWS
SAM := PATH="$(CURDIR)/.venv-sam/bin:$$PATH" SAM_CLI_TELEMETRY=0 sam
# Neither checking nor building calls AWS, but sam wants a region.
REGION = $(or $(AWS_REGION),$(AWS_DEFAULT_REGION),us-east-1)
export LAYER_PLATFORM ?= $(if $(filter x86_64,$(ARCHITECTURE)),x86_64,aarch64)-manylinux_2_28

.PHONY: validate build
validate: build ## Lint template.yaml and build what it deploys
	$(SAM) validate --lint --region $(REGION)

build: $(SAM_STAMP) ## Build what it deploys: make build [ARCHITECTURE=x86_64]
	$(SAM) build --region $(REGION)

# An environment of its own: the pins of aws-sam-cli contradict ours.
$(SAM_STAMP): .venv-sam/$(UV_STAMP)
	@.venv-sam/bin/uv pip install --quiet --python .venv-sam/bin/python aws-sam-cli==$(SAM_VERSION)
	@touch $@

.PHONY: clean
clean: ## Remove what the other targets made
	rm -rf .venv .venv-sam .aws-sam .kb build layers/shared/kb.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find functions layers tests -name __pycache__ -type d -prune -exec rm -rf {} +
