# Situations from public bug reports, in this directory or in CASES=DIR. CASE="C01 C14" plays only those; PLANES=2 boots two
# control planes side by side instead of six.

.PHONY: cases
cases: testbed ## Situations from public bug reports: what is said about them, how a plan ends there [CASE="C01 C14" CASES=DIR PLANES=6]
	@$(STAGE) "the programs" $(BUILD)
	@$(STAGE) "the cases" cargo test --locked --test cases -- $(CASE)
