# One command runs what CI runs. `make help` lists them.
SPARK ?=
VENV  := .venv$(if $(SPARK),-spark-$(SPARK))
BIN   := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test campaign lint format bench bench-ticks bench-flow bench-clock bench-functions bench-rebuilds bench-views bench-tpch bench-refresh bench-nexmark bench-orders bench-state bench-partitioned bench-streaming bench-process bench-server bench-peers bench-vector docs docs-api docs-site docs-functions docs-sql docs-streaming lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  SPARK=4.3.0 behind any of them uses another Spark, in an environment of its own"

setup: ## create the environment (packages, and Java if it is missing); the others do it by themselves
	@scripts/setup.sh $(VENV) $(SPARK)

demo: setup ## a stream into views into files, killed on the way, in under a minute
	@$(BIN)/python examples/demo.py

test: setup ## run the tests, in processes side by side (ARGS="-k name" to choose)
	@scripts/test.sh $(BIN)/python $(ARGS)

campaign: setup ## run all tests in their long versions
	@$(BIN)/python -m pytest --campaign $(ARGS)

lint: setup ## check style, types and layers
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: setup ## format the code and apply safe fixes
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: setup ## measure side by side with plain PySpark; writes benchmarks/results/*.json
	@$(BIN)/python benchmarks/session.py

bench-ticks: setup ## measure ticks of views side by side with other engines (bench-peers installs those)
	@$(BIN)/python benchmarks/ticks.py --quick

bench-flow: setup ## measure what durability costs a flow and how fast it comes back
	@$(BIN)/python benchmarks/flow.py

bench-clock: setup ## measure what it costs that time passes, with a million rows in the window
	@$(BIN)/python benchmarks/clock.py

bench-functions: setup ## measure ticks of views with functions that Spark or Python evaluates
	@$(BIN)/python benchmarks/functions.py

bench-rebuilds: setup ## measure ticks as large as what is there side by side with building views from nothing
	@$(BIN)/python benchmarks/rebuilds.py

bench-views: setup ## measure ticks that touch 200 different views over one source
	@$(BIN)/python benchmarks/views.py

bench-tpch: setup ## measure refreshes of the 22 TPC-H queries side by side with Spark
	@$(BIN)/python benchmarks/tpch.py

bench-refresh: setup ## measure refreshes of TPC-H's queries as materialized views side by side with Spark
	@$(BIN)/python benchmarks/refresh.py

bench-nexmark: setup ## measure the 23 queries of Nexmark side by side with Spark Structured Streaming
	@$(BIN)/python benchmarks/nexmark.py --quick

bench-orders: setup ## measure ticks of views over an order side by side with DuckDB and Spark
	@$(BIN)/python benchmarks/orders.py

bench-state: setup ## measure updates of keyed state and its checkpoints
	@$(BIN)/python benchmarks/state.py

bench-partitioned: setup ## measure ticks of flows in shards side by side with Spark
	@$(BIN)/python benchmarks/partitioned.py

bench-streaming: setup ## measure streaming queries side by side with plain PySpark
	@$(BIN)/python benchmarks/streaming.py

bench-process: setup ## measure process functions on Spark side by side with plain transformWithState
	@$(BIN)/python benchmarks/process.py

bench-server: setup ## measure a server: ticks, large results, a hundred clients, a thousand watches
	@$(BIN)/python benchmarks/server.py

bench-vector: setup ## measure ticks of vector views side by side with NumPy, and the recall of approximate ones
	@$(BIN)/python benchmarks/vector.py

bench-peers: setup ## install or build the engines that bench-ticks compares with, each in a folder of its own
	@$(BIN)/python benchmarks/peers.py

docs: setup ## run every code block of README and docs
	@$(BIN)/python -m pytest tests/docs

docs-api: setup ## write docs/api.md from signatures and docstrings
	@$(BIN)/python scripts/api_reference.py

docs-site: setup ## build the docs as a site in site/, from the pages and notebooks in docs/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

docs-functions: setup ## write docs/functions.md, and the table it is made of, from what Spark and flows do
	@$(BIN)/python scripts/function_support.py

docs-sql: setup ## write docs/sql-support.md from what the tests check
	@$(BIN)/python scripts/sql_support.py

docs-streaming: setup ## write docs/streaming-support.md from what the tests check
	@$(BIN)/python scripts/streaming_support.py

lock: setup ## refresh constraints.txt from pyproject.toml
	@$(BIN)/python scripts/lock.py

clean: ## remove environments, caches and results
	rm -rf .venv .venv-spark-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache benchmarks/results site
