"""Run scikit-learn's and River's own checks on the estimators: `python -m tools.estimators [NAME]`.

Names are those of the classes; without any, all are checked, with their defaults. `--quick` makes
them small, which saves minutes of compilation. A check that is expected to fail is listed in
`EXPECTED_FAILURES` with its reason; if it passes, that counts as a failure.
"""

import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["EXPECTED_FAILURES", "QUICK", "SHORT", "Checked", "check_river", "check_sklearn"]

# Check of scikit-learn or River -> why our estimators cannot pass it. None so far.
EXPECTED_FAILURES: dict[str, str] = {}
# Little to compile: a linear model, and one level for those that have levels.
QUICK: dict[str, Any] = {"model": "logistic", "capacity": 400}
SHORT = {"horizon": 2}
RIVER_TASK = 20  # rows: River's streams of 60 to 2,000 rows are then several tasks


class Checked(NamedTuple):
    """One check of one estimator."""

    name: str
    status: str  # passed, failed, skipped, xfail
    problem: str = ""


def check_sklearn(model: Any) -> Iterator[Checked]:
    """Yield the results of scikit-learn's `check_estimator`."""
    from sklearn.utils.estimator_checks import check_estimator

    results = check_estimator(
        model, on_fail=None, on_skip=None, expected_failed_checks=EXPECTED_FAILURES
    )
    for one in results:
        problem = "" if one["status"] == "passed" else repr(one["exception"])
        expected = one["check_name"] in EXPECTED_FAILURES
        status = "failed" if expected and one["status"] == "passed" else one["status"]
        yield Checked(one["check_name"], status, problem)


def check_river(model: Any) -> Iterator[Checked]:
    """Yield the results of River's `check_estimator`."""
    from river.checks import yield_checks

    for check in yield_checks(model):
        name, problem = check.__name__, ""
        try:
            check(model.clone())
        except Exception as error:  # whatever a check raises is its result
            problem = repr(error)
        expected = name in EXPECTED_FAILURES
        status = "passed" if not problem else "xfail" if expected else "failed"
        yield Checked(name, status, problem)


def main(words: list[str]) -> int:
    """Print a line per estimator and per check that did not pass; return how many failed."""
    os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before SciPy is loaded: one check asks for it
    warnings.simplefilter("ignore")
    from fairsaoml.estimators import river, sklearn

    quick, names = "--quick" in words, [word for word in words if not word.startswith("-")]
    failures = 0
    for library, module, check in (
        ("scikit-learn", sklearn, check_sklearn),
        ("River", river, check_river),
    ):
        for name in module.__all__:
            cls = getattr(module, name)
            if not hasattr(cls, "_learner") or (names and name not in names):
                continue
            settings = {"task_size": RIVER_TASK} if module is river else {}
            if quick:
                settings |= {k: v for k, v in (QUICK | SHORT).items() if k in cls._parameter_fields}
            begun, results = time.monotonic(), list(check(cls(**settings)))
            counts = Counter(one.status for one in results)
            said = ", ".join(f"{number} {status}" for status, number in counts.items())
            print(f"{library} {name}: {said} ({time.monotonic() - begun:.0f} s)", flush=True)
            for one in results:
                if one.status != "passed":
                    print(f"  {one.status} {one.name}: {one.problem[:300]}")
            failures += counts["failed"]
    return failures


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
