# Faults on virtual clusters, every invariant at every step (docs/testing.md). Without SEED: seeds from 1 on, then a fifth
# as many steps from a random seed, which is printed. With SEED: only from that seed on; STEPS=1 SEED=n plays one scenario.
FUZZ := cargo test --locked --test fuzz
SLOW += fuzz-long fuzz-planted

.PHONY: fuzz
fuzz: ## Random clusters, plans and faults; the invariants at every step [STEPS=50000 SEED=…]
	@$(STAGE) "the fuzz" cargo test --locked --test fuzz --no-run
	@STEPS=$(or $(STEPS),50000) SEED=$(SEED) $(FUZZ)

.PHONY: fuzz-quick
fuzz-quick:
	@$(STAGE) "faults and invariants, 50,000 steps; what is said of 500 clusters" env STEPS=50000 CLUSTERS=500 $(FUZZ)

.PHONY: fuzz-long
fuzz-long: ## The same for a million steps
	@$(STAGE) "faults and invariants, 1,000,000 steps; what is said of 20,000 clusters" env STEPS=1000000 CLUSTERS=20000 $(FUZZ)

.PHONY: outlooks
outlooks: ## What is said of waiting pods, slow or never, against what becomes of them [CLUSTERS=5000 SEED=…]
	@$(STAGE) "the fuzz" cargo test --locked --test fuzz --no-run
	@CLUSTERS=$(or $(CLUSTERS),5000) SEED=$(SEED) $(FUZZ)

.PHONY: fuzz-planted
fuzz-planted: ## Each deliberate error in the plan, and in what is said of pods, is noticed [PLANTED=words of one]
	@$(STAGE) "deliberate errors" env PLANTED=$(or $(PLANTED),all) $(FUZZ) --features planted
