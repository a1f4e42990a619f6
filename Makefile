# Each target sets up what it needs by itself (virtual environment, Java, jars) and skips what is there.
.DEFAULT_GOAL := help
.PHONY: help demo test fast check coverage nightly mutants versions oracle bench docs wheel sbom clean

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 18

demo: ## Two syncs of a tenant, what the second changed and would send, and a look back in time (KEEP=DIR)
	@tools/setup.sh python java
	@tools/run.sh tools/demo.sh $(if $(KEEP),"$(KEEP)")

test: ## Run every test but the nightly ones
	@tools/setup.sh python java jars oracle classes console browser
	@tools/run.sh python tools/run_tests.py all $(ARGS)

fast: ## Run the quick tests, which need neither Java nor a browser
	@tools/setup.sh python
	@tools/run.sh python tools/run_tests.py fast $(ARGS)

check: ## All that a change must pass: style, format, types, dependency directions, tests
	@tools/setup.sh python java jars oracle classes console browser
	@tools/check.sh
	@tools/run.sh python tools/run_tests.py all $(ARGS)

coverage: ## Branch coverage of the quick tests, by package, and the functions that write and are covered least
	@tools/setup.sh python
	@tools/run.sh python tools/branch_coverage.py $(ARGS)

nightly: ## Run the long tests
	@tools/setup.sh nightly java jars oracle classes console browser
	@tools/run.sh pytest -m "nightly or hypothesis or sampled" --hypothesis-profile=nightly $(ARGS)
	@$(MAKE) mutants
	@$(MAKE) versions

mutants: ## Change the code of the logs and of updates in small ways, and count the changes that no test notices (ARGS=MODULE*)
	@tools/setup.sh python
	@tools/run.sh mutmut run $(ARGS)
	@tools/run.sh python tools/mutants.py

versions: ## Run the tests at the oldest pandas and PySpark, and the engine's at each PySpark between and beside delta-spark
	@tools/setup.sh python java jars oracle classes console browser
	@tools/with_versions.sh "pandas==2.2.3 pyspark==4.1.1" python tools/run_tests.py all
	@tools/with_versions.sh "pandas==2.3.3 pyspark==4.1.4" pytest -m spark tests/engine
	@tools/with_versions.sh "pandas==2.3.3 pyspark==4.2.1" pytest -m spark tests/engine
	@tools/with_versions.sh "pandas==2.3.3 pyspark==4.2.0 delta-spark==4.4.0" pytest tests/interop/test_delta_spark_beside.py

oracle: ## Make the tables of tests/oracle anew with Spark and delta-rs; prints which answers changed (ARGS=TABLE)
	@tools/setup.sh python java oracle
	@tools/run.sh python -m tests.oracle $(ARGS)

bench: ## Measure; results go to benchmarks/results/
	@tools/setup.sh python java jars oracle bench ducklake
	@tools/run.sh python benchmarks/import_time.py
	@tools/run.sh python benchmarks/log_load.py
	@tools/run.sh python benchmarks/jobs.py
	@tools/run.sh python benchmarks/pyspark_job.py
	@tools/run.sh python benchmarks/many_streams.py
	@tools/run.sh python benchmarks/update_steps.py
	@tools/run.sh python benchmarks/versions.py
	@tools/run.sh python benchmarks/updates.py

docs: ## Build the documentation as a site in site/; a link that leads nowhere fails it
	@tools/setup.sh python
	@NO_MKDOCS_2_WARNING=1 tools/run.sh mkdocs build --quiet --strict
	@echo "The documentation is in site/index.html"

wheel: ## Build dist/freezeframe-*.whl, which has the console's pages and the examples (OUT=DIR)
	@tools/setup.sh python console
	@.cache/uv/bin/uv build --quiet --wheel --out-dir $(or $(OUT),dist)
	@ls $(or $(OUT),dist)/freezeframe-*.whl

sbom: ## Write the lists of what a release consists of (CycloneDX) to dist/
	@tools/setup.sh python console
	@tools/run.sh tools/sbom.sh

clean: ## Remove what the other targets made here
	rm -rf .venv .cache mutants ui/node_modules ui/dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist site
