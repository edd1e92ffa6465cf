# Cases that wait for what the control plane does every minute only.
SLOW += e2e-slow

.PHONY: e2e-slow
e2e-slow: testbed ## The end-to-end cases that take minutes of waiting
	@$(STAGE) "slow end-to-end cases" cargo test --locked --test e2e -- --slow
