"""What runs there are in a folder."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairsaoml.core.errors import RunError
from fairsaoml.evaluate.verdict import ANSWERS, not_judged
from fairsaoml.runs.folder import ROUNDS, SPEC, finished_summary, read_spec
from fairsaoml.runs.journal import read_rounds

DEPTH = 2  # folders below: a comparison has its runs in a folder of its own


def list_runs(folder: Path) -> list[dict[str, Any]]:
    """Return the runs in a folder, the newest first, as plain data.

    Each has `name` (its path below the folder), `stream`, `learner`, `rounds`, `verdict` (a word on
    its state where there is none yet), the groups `not_judged` for too few rows, and `when` its
    journal was last written.

    Raises:
        RunError: there is no such folder.
    """
    if not folder.is_dir():
        raise RunError(f"expected a folder of runs at {folder}, found none; name one")
    listed = [_listed(path.parent, folder) for path in _specs(folder, DEPTH)]
    return sorted(listed, key=lambda run: run["when"], reverse=True)


def _specs(folder: Path, depth: int) -> Iterator[Path]:
    if (folder / SPEC).is_file():
        yield folder / SPEC
    elif depth >= 0:
        for below in folder.iterdir():
            if below.is_dir() and not below.is_symlink():
                yield from _specs(below, depth - 1)


def _listed(run: Path, folder: Path) -> dict[str, Any]:
    journal = run / ROUNDS
    listed: dict[str, Any] = {
        "name": str(run.relative_to(folder)) if run != folder else run.resolve().name,
        "stream": "",
        "learner": "",
        "rounds": 0,
        "verdict": "damaged",
        "not_judged": [],
    }
    with suppress(RunError, KeyError, TypeError):
        content = read_spec(run)
        stream, learner = str(content["stream"]["name"]), str(content["learner"]["name"])
        listed |= {"stream": Path(stream).name or stream, "learner": learner}
        if summary := finished_summary(run):
            verdict = summary.get("verdict")
            state = ANSWERS[verdict["answer"]] if verdict else "finished"
            groups = not_judged(verdict) if verdict else []
            listed |= {"rounds": summary["rounds"], "verdict": state, "not_judged": groups}
        else:
            lines = read_rounds(journal) if journal.exists() else []
            waits = "before" in content and not lines  # a model from Python, for `learn`
            state = "no rounds yet" if waits else "not finished"
            listed |= {"rounds": len({line["round"] for line in lines}), "verdict": state}
    written = journal if journal.exists() else run / SPEC
    when = datetime.fromtimestamp(written.stat().st_mtime, UTC)
    return listed | {"when": f"{when:%Y-%m-%d %H:%M}"}
