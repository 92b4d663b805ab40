# Everything a person or CI runs. Each target sets up what it needs; a second run installs nothing.
FOLDER ?= knowledge_base_seed
PORT ?= 8000
ARCHITECTURE ?= arm64
STACK ?= kb
PARAMETERS ?=
BUILD := .aws-sam/build
AWS ?= aws
DOCKER ?= docker

UV_VERSION := 0.13.9
SAM_VERSION := 1.170.0
CHECKOV_VERSION := 3.3.30
MINISTACK_VERSION := 1.5.33
PYTHONS ?= python3.13 python3.12 python3.11 python3
SUITABLE := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))

# An environment that is active in the shell would be the one that uv fills.
unexport VIRTUAL_ENV

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# -------------------------------------------------------------------------------- on this machine
# A stamp is younger than what it was made from and names the version and place that it is for
# (an environment does not survive a move); a failed or interrupted set-up leaves none.
PINS := pyproject.toml layers/dependencies/requirements.txt
PLACE := $(shell pwd -P | cksum | cut -d ' ' -f 1)
UV_STAMP := .uv-$(UV_VERSION)-$(PLACE)
SAM_STAMP := .venv-sam/.sam-$(SAM_VERSION)
CHECKOV_STAMP := .venv-checkov/.checkov-$(CHECKOV_VERSION)
MINISTACK_STAMP := .venv-ministack/.ministack-$(MINISTACK_VERSION)

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
SAM := MAKEFLAGS= PATH="$(CURDIR)/.venv-sam/bin:$$PATH" SAM_CLI_TELEMETRY=0 sam
# Neither checking nor building calls AWS, but sam wants a region.
REGION = $(or $(AWS_REGION),$(AWS_DEFAULT_REGION),us-east-1)
export LAYER_PLATFORM ?= $(if $(filter x86_64,$(ARCHITECTURE)),x86_64,aarch64)-manylinux_2_28
IMAGE_PLATFORM := linux/$(if $(filter x86_64,$(ARCHITECTURE)),amd64,arm64)
REPOSITORY = $(STACK)-embedding
# Paths and contents below a folder; git is there wherever a clone is.
files = find $(1) -type f -not -path '*/__pycache__/*' | LC_ALL=C sort
contents = { $(files); $(files) | git hash-object --no-filters --stdin-paths; }

.PHONY: validate audit build image deploy
validate: build ## Lint template.yaml and build what it deploys
	$(SAM) validate --lint --region $(REGION)

audit: $(CHECKOV_STAMP) ## Look for unsafe settings in template.yaml
	.venv-checkov/bin/checkov --config-file .checkov.yaml

build: $(SAM_STAMP) ## Build what it deploys: make build [ARCHITECTURE=x86_64]
	$(SAM) build --region $(REGION) --build-dir $(BUILD)

image: ## Build the embedding image and push it to ECR
	@for tool in $(AWS) $(DOCKER); do command -v $$tool >/dev/null || { \
	  echo "$$tool is needed for the embedding image; an existing embedding function needs none:" \
	    "PARAMETERS=EmbeddingFunctionArn=..." >&2; exit 1; }; \
	done
	@set -e; mkdir -p .aws-sam; \
	tag=$$({ $(call contents,functions/embedding); echo $(IMAGE_PLATFORM); } \
	  | git hash-object --stdin); \
	repository=$$($(AWS) ecr describe-repositories --repository-names $(REPOSITORY) \
	    --query 'repositories[0].repositoryUri' --output text 2>/dev/null) || \
	  repository=$$($(AWS) ecr create-repository --repository-name $(REPOSITORY) \
	    --image-tag-mutability IMMUTABLE --image-scanning-configuration scanOnPush=true \
	    --query repository.repositoryUri --output text); \
	if ! $(AWS) ecr describe-images --repository-name $(REPOSITORY) \
	    --image-ids imageTag=$$tag >/dev/null 2>&1; then \
	  $(AWS) ecr get-login-password | \
	    $(DOCKER) login --username AWS --password-stdin "$${repository%%/*}"; \
	  BUILDX_NO_DEFAULT_ATTESTATIONS=1 $(DOCKER) build --platform $(IMAGE_PLATFORM) \
	    --tag "$$repository:$$tag" functions/embedding; \
	  $(DOCKER) push "$$repository:$$tag"; \
	fi; \
	echo "$$repository:$$tag" | tee .aws-sam/embedding-image

deploy: build ## Deploy: make deploy [STACK=kb] [PARAMETERS="Language=en"]
	@set -e; \
	case " $(PARAMETERS)" in \
	  *\ EmbeddingFunctionArn=?*|*\ EmbeddingImageUri=?*) image= ;; \
	  *) $(MAKE) image; image="EmbeddingImageUri=$$(cat .aws-sam/embedding-image)" ;; \
	esac; \
	values="Architecture=$(ARCHITECTURE) $$image $(PARAMETERS)"; \
	print=$$({ $(call contents,$(BUILD)); echo "$$values"; } | git hash-object --stdin); \
	$(SAM) deploy --stack-name $(STACK) --no-fail-on-empty-changeset \
	  --config-file $(CURDIR)/samconfig.toml --template-file $(BUILD)/template.yaml \
	  --parameter-overrides "$$values CodeFingerprint=$$print"

# ------------------------------------------------------------ AWS's side, run for real over here
NODE := .venv/bin/python tests/opensearch/node.py run

.PHONY: test-opensearch test-deploy
test-opensearch: .venv/.dev ## Test the vector index on an OpenSearch node
	$(NODE) .venv/bin/python -m pytest tests/contract tests/opensearch

test-deploy: .venv/.dev $(SAM_STAMP) $(MINISTACK_STAMP) ## Deploy to an emulator and test there
	$(NODE) .venv/bin/python -m pytest tests/deploy

.PHONY: test-embedding test-image
test-embedding: ## Test the embedding container's code
	tests/embedding/run.sh

test-image: ## Build the embedding image and ask it, where Docker runs
	tests/embedding/run.sh tests/embedding/test_image.py

.PHONY: sam-local test-sam-local
sam-local: .venv/.dev $(SAM_STAMP) ## Start what `sam local` needs, until Ctrl-C
	@.venv/bin/python -m tests.sam_local.set_up

test-sam-local: .venv/.dev $(SAM_STAMP) ## Test the functions in containers, by `sam local`
	SAM_LOCAL_TEST=yes .venv/bin/python -m pytest tests/sam_local

# Environments of their own: the pins of these tools contradict ours.
$(SAM_STAMP): .venv-sam/$(UV_STAMP)
	@.venv-sam/bin/uv pip install --quiet --python .venv-sam/bin/python aws-sam-cli==$(SAM_VERSION)
	@touch $@

$(CHECKOV_STAMP): .venv-checkov/$(UV_STAMP)
	@.venv-checkov/bin/uv pip install --quiet --python .venv-checkov/bin/python \
	  checkov==$(CHECKOV_VERSION)
	@touch $@

# Lean, since functions on MiniStack see its packages: one of these hides what a layer lacks.
$(MINISTACK_STAMP): .venv-ministack/$(UV_STAMP)
	@.venv-ministack/bin/uv pip install --quiet --python .venv-ministack/bin/python \
	  ministack==$(MINISTACK_VERSION) aws-sam-translator==1.115.0
	@touch $@

.PHONY: clean
clean: ## Remove what the other targets made
	rm -rf .venv .venv-* .aws-sam .kb build layers/shared/kb.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
