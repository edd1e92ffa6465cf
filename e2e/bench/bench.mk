# What must hold in numbers.
SLOW += bench-budgets

ROUNDS ?= 5
# Nothing: A, then B.
WORKLOAD ?=
# A page to write the figures to.
RECORD ?=

.PHONY: bench bench-drain bench-budgets
bench: bench-drain bench-budgets ## Everything that must hold in numbers; nothing else should run meanwhile

bench-drain: testbed ## The same drain by kubectl and by plans, next to the bound ([ROUNDS=5] [WORKLOAD=A|B] [RECORD=docs/benchmarks.md])
	@$(STAGE) "release build" e2e/static-build target/bench
	@$(STAGE) "drains" cargo bench --locked --bench drain -- --controller target/bench/drainplan-controller --rounds $(ROUNDS) $(if $(WORKLOAD),--workload $(WORKLOAD)) $(if $(RECORD),--record $(RECORD))

bench-budgets: testbed ## Memory a pod and time of an update at 150,000 pods; budgets -A against kubectl get
	@$(STAGE) "memory and updates" cargo bench --locked --bench cluster
	@$(STAGE) "budgets -A" cargo bench --locked --bench budgets
