# The model against the real disruption controller and Eviction API: N namespaces (300), SEED of the random world (the
# clock), MUTATE=1…12|all for deliberate errors that must be found, KEEP=1 keeps the cluster.
PARITY := cargo test --locked --test parity
SLOW += parity parity-errors

.PHONY: parity
parity: testbed ## The model against the real control plane [N=300 SEED=… MUTATE=1…12|all]
	@N=$(N) SEED=$(SEED) MUTATE=$(MUTATE) $(PARITY) $(if $(MUTATE),--features planted)

.PHONY: parity-errors
parity-errors: testbed ## Each of 12 deliberate errors in the model is found
	@$(STAGE) "deliberate errors" env MUTATE=all $(PARITY) --features planted

.PHONY: parity-quick
parity-quick: testbed
	@$(STAGE) "parity, a small run" env N=30 SEED=1 $(PARITY)
