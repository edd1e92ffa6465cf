# Situations from public bug reports: CASES=DIR holds them, CASE="C01 C14" plays only those.
SLOW += cases

.PHONY: cases
cases: testbed ## What is said about situations from public bug reports [CASE="C01 C14" CASES=DIR]
	@$(STAGE) "the programs" $(BUILD)
	@$(STAGE) "the cases" cargo test --locked --test cases -- $(CASE)
