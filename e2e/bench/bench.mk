# What must hold in numbers.
SLOW += bench

.PHONY: bench
bench: testbed ## Memory a pod and time of an update at 150,000 pods; budgets -A against kubectl get
	@$(STAGE) "memory and updates" cargo bench --locked --bench cluster
	@$(STAGE) "budgets -A" cargo bench --locked --bench budgets
