# The same drains on virtual clusters and on a real control plane: ONLY="1 demo" plays those with such a name.
SLOW += fidelity

.PHONY: fidelity
fidelity: testbed ## The simulation against the real control plane: same nodes, pods, reasons, and about the same time [ONLY="1 demo"]
	@$(STAGE) "the programs" $(BUILD)
	@$(STAGE) "fidelity" cargo test --locked --test fidelity -- $(ONLY)
