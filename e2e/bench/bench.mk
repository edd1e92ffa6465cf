# What must hold in numbers.
.PHONY: bench-cluster
bench-cluster: ## Memory a pod and time of an update at 150,000 pods
	@$(STAGE) "memory and updates" cargo bench --locked --bench cluster
