SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory --no-builtin-rules
.NOTPARALLEL:

STAGE := e2e/stage
DEBUG := $(or $(CARGO_TARGET_DIR),target)/debug
# Every integration test but the one that needs a control plane. Programs and tests are built by one and the same command
# everywhere, because cargo compiles the dependencies again when the set of features differs, as it does without tests.
TESTS := $(foreach test,$(basename $(notdir $(wildcard tests/*.rs))),--test $(test))
BUILD := cargo build --locked --bins $(TESTS)

# What `make test-slow` runs; e2e/*/*.mk may add to it.
SLOW := testbed-check image-check demo-selfcheck
-include e2e/*/*.mk

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: testbed ## A plan drains a real control plane's nodes before your eyes (DEMO_KEEP=1 leaves the cluster)
	@$(STAGE) "the programs" cargo build --locked --bins --examples
	@$(STAGE) "the demo" cargo run --quiet --locked --example demo

.PHONY: demo-selfcheck
demo-selfcheck: testbed ## Proves that the demo notices when something ends otherwise
	@$(STAGE) "the programs" cargo build --locked --bins --examples
	@$(STAGE) "the demo's own check" cargo run --quiet --locked --example demo -- --selfcheck

.PHONY: test
test: ## Everything that must hold: format, lints, CRD, dependencies, unit tests, fuzz, parity, the demo, end-to-end cases, situations from bug reports
	@start=$$(date +%s); $(MAKE) room fmt-check clippy deny unit crds-check fuzz-quick parity-quick demo e2e cases && echo && echo "make test: all passed in $$(($$(date +%s) - start)) s"

.PHONY: test-slow
test-slow: $(SLOW) ## What is too slow for every change

# What measures goes first.
.PHONY: evidence
evidence: ## All of test-slow at full length and the drains of bench-drain, written to docs/evidence.md [PART="parity fuzz-long" ROUNDS=5]
	@PART="$(PART)" e2e/evidence docs/evidence.md "bench-drain:ROUNDS=$(ROUNDS) RECORD=docs/benchmarks.md" $(patsubst parity,parity:N=2000,$(SLOW))

# What is built takes up to 8 GB, less when it is there already; six clusters side by side up to 2.
.PHONY: room
room:
	@e2e/room $(if $(wildcard $(DEBUG)),3,8) $(DEBUG)
	@e2e/room 2 $(or $(TMPDIR),/tmp)

.PHONY: fmt-check
fmt-check: ## Formatting (`cargo fmt` mends it)
	@$(STAGE) "format" cargo fmt --check

.PHONY: clippy
clippy: ## Lints, pedantic
	@$(STAGE) "lints" cargo clippy --locked --all-targets -- -D warnings
	@$(STAGE) "lints of what boots clusters" cargo clippy --locked --test e2e --test parity --test cases --test fidelity -- -D warnings

.PHONY: deny
deny: ## Rules on dependencies: duplicates, licences, sources
	@$(STAGE) "cargo-deny" e2e/cargo-deny install
	@$(STAGE) "dependencies" e2e/cargo-deny check bans licenses sources

.PHONY: unit
unit: ## Unit tests and those of the source itself
	@$(STAGE) "unit tests" cargo test --locked --lib --bins $(TESTS)

.PHONY: crds
crds: ## Writes crds/drainplan.yaml anew
	@$(STAGE) "the programs" $(BUILD)
	@$(DEBUG)/kubectl-drainplan crd > crds/drainplan.yaml.new && mv crds/drainplan.yaml.new crds/drainplan.yaml

.PHONY: docs
docs: ## Writes what is made from e2e/reasons.yaml into docs/reasons.md anew
	@$(STAGE) "docs/reasons.md" env MAKE_DOCS=1 cargo test --locked --test reasons the_page_shows_what_users_read

.PHONY: crds-check
crds-check: ## The committed CRD is what the program prints
	@$(STAGE) "the programs" $(BUILD)
	@$(STAGE) "CRD" bash -c 'diff -u crds/drainplan.yaml <($(DEBUG)/kubectl-drainplan crd) || { echo "crds/drainplan.yaml is not what the program prints: run make crds"; exit 1; }'

.PHONY: testbed
testbed: ## Builds the control plane's binaries, once (10 to 15 minutes; TESTBED_BIN=DIR uses ready ones)
	@$(STAGE) "the testbed's binaries" e2e/testbed build

.PHONY: testbed-check
testbed-check: testbed ## The testbed keeps its own promises
	@$(STAGE) "the testbed's promises" e2e/testbed check

.PHONY: e2e
e2e: testbed ## The end-to-end cases of e2e/cases.md
	@$(STAGE) "end-to-end cases" cargo test --locked --test e2e

.PHONY: release
release: ## Both programs, static, for release
	@$(STAGE) "release build" e2e/static-build

.PHONY: image-check
image-check: testbed ## The image's program is static and drains a node from an empty root
	@$(STAGE) "image" e2e/image-check

.PHONY: clean
clean: ## Removes what was built here (not the testbed and tools in ~/.cache/drainplan)
	@cargo clean
