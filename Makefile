# Two commands do everything: `make demo` and `make test`. Both prepare .venv first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: install demo live browser tune reproduce test suite slow slowest lint style types format golden docs stubs shapes kill attack estimators bench bench-full clean

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

# The main job: three learners on the built-in stream that changes twice, in one report.
demo: install
	$(BIN)/fairsaoml run synthetic --out runs/demo/default --force
	$(BIN)/fairsaoml run synthetic --learner fairsaoml --out runs/demo/paper --force
	$(BIN)/fairsaoml run synthetic --set constraints=none --out runs/demo/unconstrained --force
	$(BIN)/fairsaoml report runs/demo/default runs/demo/paper runs/demo/unconstrained \
		--out runs/demo/report.html --picture runs/demo/picture.svg

live: install  ## the service with a simulated world that changes twice; a page to watch
	$(BIN)/fairsaoml serve --demo

browser:  ## Debian's Chromium, for the tests of the page; skipped where it may not be installed
	command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
		&& apt-get update -qq && apt-get install -y -qq chromium; } \
		|| echo "no browser: the tests of the page will be skipped"

tune: install  ## the search for the settings of the paper's seven learners, into paper/tuned; 20 minutes
	printf '%s\n' fairsaoml fair-fml mask-ftml fair-aogd fair-glc aod cbce | xargs -P 2 -I LEARNER \
		$(BIN)/python -m paper tune movielens,stop-and-frisk:BMS,stop-and-frisk:RQS --learner LEARNER \
		--seeds 1 --jobs 1 --trials 40 --set meta_iterations=20 --save paper/tuned/LEARNER.toml

reproduce: install  ## the paper's figures and tables into runs/paper; the same command continues
	$(BIN)/python -m paper reproduce all --seeds 10

test: install style
	$(MAKE) --no-print-directory -j 2 types suite  # mypy has one thread: beside the tests

suite: install
	$(BIN)/python -m pytest -n 2 --dist loadfile

slowest: install  ## all tests, and the twenty that took longest
	$(BIN)/python -m pytest -n 2 --dist loadfile --durations=20

slow: install  ## the tests that `make test` leaves out: the same laws for more learners
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow

lint: style types

style: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: install
	$(BIN)/mypy

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

golden: install  ## golden runs of new learners, LEARNERS="a b": theirs anew; read the diff
	$(BIN)/python -m tests.golden $(LEARNERS)

docs: install  ## runs every block of the documentation, checks its links, builds build/docs
	$(BIN)/python -m tools.docs

stubs: install  ## writes the signatures of the classes made from the registry, for editors
	$(BIN)/python -m tools.stubs

shapes: install  ## all tests with the shapes in annotations enforced
	FAIRSAOML_SHAPES=1 $(BIN)/python -m pytest -n 2 --dist loadfile

kill: install  ## 200 kills with SIGKILL at random moments, and full disks; about 15 minutes
	$(BIN)/python -m tests.kill --kills 200
	$(BIN)/python -m tests.kill_service --kills 200

attack: install  ## 20,700 spoiled tables, settings, runs and requests; about ten minutes
	PYTHONPATH=tests $(BIN)/python -m attack --inputs 2300

estimators: install  ## scikit-learn's and River's own checks on every class; about 10 minutes
	$(BIN)/python -m tools.estimators

.venv/peer: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	touch $@

bench: .venv/peer  ## speed and memory as ratios, into docs/benchmarks.md; some 5 minutes
	$(BIN)/python -m benchmarks --markdown docs/benchmarks.md

bench-full: .venv/peer  ## the same with more rounds, learners and peers
	$(BIN)/python -m benchmarks --full --markdown docs/benchmarks.md

clean:
	rm -rf .venv build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
