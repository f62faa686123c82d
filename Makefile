# Two commands: `make demo` to see it work, `make test` to check it. Both make the environment first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo figure pages site test test-slow test-slurm test-release test-oldest test-all stress gpu bench bench-against bench-peers setup format house

demo: setup
	$(BIN)/snakemake
	@echo "look at results/full/report/index.html"

ifeq ($(firstword $(MAKECMDGOALS)),figure)  # its second word is no target, but what it draws
SHOWN := $(or $(wordlist 2,9,$(MAKECMDGOALS)),$(error name one: make figure fedentopt.tab1))
.PHONY: $(SHOWN)
$(SHOWN): figure
	@:
endif
figure: setup  # figures and tables from the released runs: make figure fedentopt.tab1; nothing is trained or downloaded
	$(BIN)/cohort restore $(sort $(foreach item,$(SHOWN),$(firstword $(subst ., ,$(item)))))
	$(BIN)/cohort draw $(SHOWN)

PAPERS := aml peco ucb fedentopt stratify
pages: setup  # the pages of the papers from the released runs: nothing is trained or downloaded
	$(BIN)/cohort restore $(filter $(PAPERS),$(notdir $(wildcard resources/released/*)))
	$(BIN)/cohort draw $(PAPERS)
	@echo "look at results/full/partial/report/index.html"

site: setup  # all pages, their figures and tables and the released runs as a static site, for any web server
	$(BIN)/cohort restore
	$(BIN)/python -m tools.site site

test: setup  # style and the quick tests: what must pass before a commit
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow/Snakefile rules
	$(BIN)/mypy
	$(BIN)/snakemake --lint
	$(BIN)/pytest -n 4 --dist worksteal -m "not alone and not slow and not long" --ignore tests/slurm --ignore tests/stress
	$(BIN)/pytest -m "alone and not slow" --ignore tests/slurm --ignore tests/stress

test-slow: setup  # those that start Snakemake again and again: reruns, kills, broken disks, other people's projects
	$(BIN)/pytest -n 4 --dist worksteal -m "slow and not alone and not long" --ignore tests/slurm --ignore tests/stress
	$(BIN)/pytest -m "alone and slow" --ignore tests/slurm --ignore tests/stress

test-slurm: setup  # on Debian's SLURM, started for it; skipped where it is not installed (tests/slurm/cluster/install.sh)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pytest -n 4 --dist loadgroup -rs tests/slurm

test-release: setup  # by the validators of RO-Crate and Croissant
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[test,validators]'
	$(BIN)/pytest tests/results/release/test_describing.py

test-oldest:  # the quick tests with the oldest releases that pyproject.toml allows; those of JPEGs are recorded with a newer Pillow
	$(PYTHON) -m venv .venv-oldest
	sed -n '/^dependencies/,/^]/s/^  "\(.*\)>=\(.*\)",/\1==\2/p' pyproject.toml > .venv-oldest/constraints.txt
	.venv-oldest/bin/pip install --quiet --constraint .venv-oldest/constraints.txt --editable . duckdb hypothesis pytest pytest-xdist tenseal
	.venv-oldest/bin/pytest -n 4 --dist worksteal -k "not brain" -m "not alone and not slow and not long" --ignore tests/slurm --ignore tests/stress

test-all: test test-slow test-slurm test-release  # all that .ci/run runs

stress: setup  # the long forms: many kills, many jobs, full disks
	$(BIN)/pytest -n 2 -m long --ignore tests/slurm --ignore tests/stress
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pytest tests/stress

bench: setup  # speed and memory against a plain loop and other frameworks, into docs/performance.md; one part: make bench ONLY=W2
	$(BIN)/python -m benchmarks $(ONLY)

# what needs a GPU, checked and measured: into benchmarks/results/gpu.json, which `make bench` puts into docs/performance.md;
# without .venv it takes PYTHON, with torch, numpy, h5py and safetensors; one piece: make gpu ONLY=rounds
gpu: PYTHON := $(firstword $(wildcard $(BIN)/python) $(PYTHON))
gpu:
	$(PYTHON) -m benchmarks.gpu $(or $(ONLY),all)

bench-against: setup  # is the working tree slower than a revision? make bench-against BASE=main ONLY="W1 W2"
	$(BIN)/python -m benchmarks.against $(BASE) $(ONLY)

bench-peers: benchmarks/.environments/flower/ready benchmarks/.environments/pfl/ready
	@for python in $(BLAZEFL_PYTHON) python3.14t python3.13t python3.14 python3.13 python3.12 $(PYTHON); do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then \
			exec $(MAKE) PYTHON=$$python benchmarks/.environments/blazefl/ready; \
		fi; \
	done; echo "BlazeFL is left out, as it needs Python 3.12 or newer: make bench-peers BLAZEFL_PYTHON=/path/to/python"

benchmarks/.environments/%/ready: benchmarks/peers/%.txt
	$(PYTHON) -m venv benchmarks/.environments/$*
	benchmarks/.environments/$*/bin/pip install --quiet --requirement $<
	touch $@

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed (make PYTHON=python3.11)")'
	@echo "installing PyTorch, Snakemake and others into .venv, once: this takes minutes"
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[test]'
	$(BIN)/cohort schema > study.schema.json  # for editors
	touch $@

house: setup  # the lines of each subpackage, a budget, into docs/design.md
	$(BIN)/python -m tools.house

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow/Snakefile rules
