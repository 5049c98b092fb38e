"""The golden runs: twenty rounds of every learner, small enough to read.

`python -m tests.golden` writes those that are missing, `python -m tests.golden LEARNER ...` some
anew. Do so only when an algorithm was meant to change, and look at the difference before
committing it.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ROUNDS = 20
FOLDER = Path(__file__).with_suffix("")
KEPT = ("round", "seed", "accuracy", "loss", "violation", "dual", "weights", "awake")
DIGITS = 5  # what two machines can be expected to agree on


def essence(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is kept of a journal's lines."""
    return [
        {
            **{name: record[name] for name in KEPT},
            **({"adapted_accuracy": record["adapted"]["accuracy"]} if record["adapted"] else {}),
        }
        for record in records
        if record["round"] <= ROUNDS
    ]


def load(learner: str) -> list[dict[str, Any]]:
    """The golden lines of a learner."""
    return json.loads(_file(learner).read_text())


def exists(learner: str) -> bool:
    """Whether a learner has golden lines."""
    return _file(learner).exists()


def _file(learner: str) -> Path:
    return FOLDER / f"{learner}.json"


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def main() -> None:
    """Run learners and write what they did."""
    sys.path.insert(0, str(FOLDER.parent))
    import tiny
    from fairsaoml.runs.runner import run

    FOLDER.mkdir(exist_ok=True)
    missing = [learner for learner in tiny.GOLDEN if not exists(learner)]
    for learner in sys.argv[1:] or missing:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "run"
            run(tiny.spec(learner), folder)
            lines = essence(tiny.records(folder))
        rows = [json.dumps({name: _rounded(line[name]) for name in line}) for line in lines]
        _file(learner).write_text("[\n" + ",\n".join(rows) + "\n]\n")
        print(_file(learner))


if __name__ == "__main__":
    main()
