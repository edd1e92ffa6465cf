# Faults on virtual clusters, every invariant at every step (docs/testing.md). Without SEED: seeds from 1 on, then a fifth
# as many steps from a random seed, which is printed. With SEED: only from that seed on; STEPS=1 SEED=n plays one scenario.
FUZZ := cargo test --locked --test fuzz
SLOW += fuzz-long fuzz-planted

.PHONY: fuzz
fuzz: ## Random clusters, plans and faults; the invariants at every step [STEPS=50000 SEED=…]
	@$(STAGE) "the fuzz" cargo test --locked --test fuzz --no-run
	@STEPS=$(STEPS) SEED=$(SEED) $(FUZZ)

.PHONY: fuzz-quick
fuzz-quick:
	@$(STAGE) "faults and invariants, 50,000 steps" env STEPS=50000 $(FUZZ)

.PHONY: fuzz-long
fuzz-long: ## The same for a million steps
	@$(STAGE) "faults and invariants, 1,000,000 steps" env STEPS=1000000 $(FUZZ)

.PHONY: fuzz-planted
fuzz-planted: ## Each deliberate error in the plan is noticed by an invariant [PLANTED=words of one]
	@$(STAGE) "deliberate errors" env PLANTED=$(or $(PLANTED),all) $(FUZZ) --features planted
