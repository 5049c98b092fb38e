"""A run's folder, read back: all that a report shows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from fairsaoml.core.errors import RunError
from fairsaoml.evaluate.flags import left_out_words
from fairsaoml.evaluate.summary import summarise
from fairsaoml.evaluate.verdict import Asked, judge
from fairsaoml.files import read_json, tidy
from fairsaoml.runs.folder import finished_summary
from fairsaoml.runs.journal import read_rounds, require_intact

# Means over rounds and their spread over seeds, means of windows, figures of pooled counts.
FIGURES = ("mean", "spread", "windows", "pooled")
UNNAMED = "the stream"  # the domain of a stream without domains

Line = Mapping[str, Any]  # one line of rounds.jsonl


class Domain(NamedTuple):
    """A stretch of rounds from the same domain; first and last are both inside."""

    name: str
    first: int
    last: int


class Block(NamedTuple):
    """A stretch of rounds in figures: all rounds, a domain, or a domain's end."""

    title: str
    domain: str | None  # None: all rounds
    first: int
    last: int
    figures: Mapping[str, Mapping[str, Any]]  # by name of FIGURES
    adapted: Mapping[str, Mapping[str, Any]] | None  # after a few labels of the round
    end: bool = False  # whether these are a domain's last rounds, not all of them
    best: Mapping[str, float] = {}  # possible there, where it is known


@dataclass(frozen=True, kw_only=True)
class Run:
    """What `spec.json`, `rounds.jsonl` and `summary.json` of one folder say."""

    name: str
    spec: Mapping[str, Any]
    lines: Sequence[Line]
    rounds: Sequence[int]  # increasing
    seeds: Sequence[int]
    domains: Sequence[Domain]
    blocks: Sequence[Block]
    finished: bool  # whether the run came to its end and wrote its summary
    asked: Asked
    verdict: Mapping[str, Any]  # as in summary.json, of the journal as it is
    left_out: Sequence[str]  # what was not learned from, in words

    @property
    def config(self) -> Mapping[str, Any]:
        """The learner's settings."""
        return (self.spec.get("learner") or {}).get("config") or {}

    @property
    def source(self) -> Mapping[str, Any]:
        """What the spec says of the stream: its name, settings, features and attributes."""
        return self.spec.get("stream") or {}

    @property
    def learner(self) -> str:
        """The learner's name."""
        return str((self.spec.get("learner") or {}).get("name", ""))

    @property
    def stream(self) -> str:
        """The stream's name, or a table's path."""
        return str(self.source.get("name", ""))

    @property
    def measure(self) -> str:
        """The accuracy that its decisions aim at."""
        balanced = self.config.get("decision") == "balanced"
        return "balanced_accuracy" if balanced else "accuracy"

    @cached_property
    def periods(self) -> dict[int, tuple[str, str]]:
        """The first and the last time of each round, where the stream has times."""
        return {line["round"]: tuple(line["period"]) for line in self.lines if line.get("period")}

    @property
    def span(self) -> tuple[float, float]:
        """The ends of an axis of rounds: half a round beyond the first and the last."""
        return (self.domains[0].first - 0.5, self.domains[-1].last + 0.5)

    def when(self, round: int) -> str:
        """A round in words, with its date where there is one."""
        period = self.periods.get(round)
        return f"round {round}" + (f" ({day(period[0])})" if period else "")

    def days(self, first: int, last: int) -> str:
        """The days of some rounds, to be said after a comma; empty where there are none."""
        periods = self.periods
        if not (first in periods and last in periods):
            return ""
        return f", {day(periods[first][0])} to {day(periods[last][1])}"

    @property
    def base(self) -> int:
        """Intervals of level k are base^k rounds long."""
        return int(self.config.get("base") or 2)

    @property
    def constraints(self) -> Sequence[str]:
        return self.spec.get("constraints") or []


def read_runs(folders: Path | str | Sequence[Path]) -> list[Run]:
    """Return the runs in one folder or several, each named by what makes it different from others.

    Raises:
        RunError: no folder, or one that holds no run.
    """
    if isinstance(folders, str | Path):
        folders = [Path(folders)]
    if not folders:
        raise RunError("expected at least one run's folder, got none; name one, as runs/NAME")
    runs = [read_run(Path(folder)) for folder in folders]
    names = distinct(differences([(run.name, run.config) for run in runs]))
    return [replace(run, name=name) for run, name in zip(runs, names, strict=True)]


def differences(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Return a label for each run: what its name says and not all names do.

    A setting that one name says and another leaves at its default is said where it is needed.

    Args:
        runs: the name, such as "aod rows=50", and all settings, of each.

    >>> one, other = {"ratio": 0.8, "rows": 9}, {"ratio": 0.9, "rows": 9}
    >>> differences([("a ratio=0.8 rows=9", one), ("a rows=9", other)])
    ['ratio=0.8', 'ratio=0.9']
    >>> differences([("aod x=1", {"x": 1}), ("cbce x=1", {"x": 1})]), differences([("a x=1", {})])
    (['aod', 'cbce'], ['a x=1'])
    """
    stems = [" ".join(word for word in name.split() if "=" not in word) for name, _ in runs]
    named = dict.fromkeys(word.split("=")[0] for name, _ in runs for word in name.split()[1:])
    keys = [key for key in named if len({str(own.get(key)) for _, own in runs if key in own}) > 1]
    if len(runs) == 1:
        return [name for name, _ in runs]
    labels = []
    for stem, (name, own) in zip(stems, runs, strict=True):
        said = [stem] if len(set(stems)) > 1 else []
        typed = [word for word in name.split()[1:] if word.split("=")[0] in keys]
        every = [f"{key}={own[key]}" for key in keys if key in own]
        labels.append(" ".join([*said, *(typed if said or typed else every)]) or name)
    return labels


def day(time: str) -> str:
    """A time without its hours."""
    return time.split(" ")[0]


def read_run(folder: Path) -> Run:
    """Return the run in a folder; one that is not finished is summarised as far as it got."""
    spec = _spec(folder / "spec.json")
    require_intact(folder / "rounds.jsonl", folder / "checkpoint" / "manifest.json")
    lines = _lines(folder / "rounds.jsonl")
    seeds = sorted({line["seed"] for line in lines})
    summary = tidy(finished_summary(folder))
    finished = bool(summary)
    if not finished:
        summary = summarise(lines, learner="", stream="", seeds=seeds)
    elif "domains" not in summary:
        raise RunError(
            f"expected domains in {folder / 'summary.json'}, got {', '.join(summary)}; remove the "
            "file or run again"
        )
    entries = summary["domains"]
    names = distinct(str(entry["name"] or UNNAMED) for entry in entries)
    domains = [Domain(name, *entry["rounds"]) for name, entry in zip(names, entries, strict=True)]
    return Run(
        name=str(spec.get("name") or folder.resolve().name),
        spec=spec,
        lines=lines,
        rounds=sorted({line["round"] for line in lines}),
        seeds=seeds,
        domains=domains,
        blocks=_blocks(summary, domains),
        finished=finished,
        asked=Asked.of(spec),
        verdict=judge(lines, Asked.of(spec)),
        left_out=left_out_words(summary),
    )


def best_of(runs: Sequence[Run]) -> dict[str, Mapping[str, float]]:
    """Return the best possible figures by domain, from whichever run of a stream has them."""
    blocks = [block for run in runs for block in run.blocks]
    return {block.domain: block.best for block in blocks if block.domain and block.best}


def attributes_of(runs: Sequence[Run]) -> list[str]:
    """Return the protected attributes, in their order."""
    return list(dict.fromkeys(name for run in runs for name in run.verdict["attributes"]))


def distinct(names: Iterable[str]) -> list[str]:
    """Return the names, with a number where one is taken.

    >>> distinct(["a", "b", "a", "a"])
    ['a', 'b', 'a (2)', 'a (3)']
    """
    kept: list[str] = []
    for name in names:
        numbered = (f"{name} ({n})" for n in range(2, len(kept) + 2))
        kept.append(next(one for one in (name, *numbered) if one not in kept))
    return kept


def _blocks(summary: Mapping[str, Any], domains: Sequence[Domain]) -> list[Block]:
    """All rounds, then each domain as a whole and its end, in the order of the stream."""

    def figures(entry: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        return {key: entry.get(key) or {} for key in FIGURES}

    def block(
        title: str, entry: Mapping[str, Any], domain: str | None = None, **more: Any
    ) -> Block:
        first, last = entry["rounds"]
        adapted = figures(entry["adapted"]) if entry.get("adapted") else None
        return Block(title, domain, first, last, figures(entry), adapted, **more)

    blocks = [block("All rounds", summary["overall"])]
    for (name, _, _), entry in zip(domains, summary["domains"], strict=True):
        best = entry.get("best") or {}
        if len(domains) > 1:
            blocks.append(block(name, entry, name, best=best))
        first, last = entry["last"]["rounds"]
        title = f"last {last - first + 1} rounds" if last > first else "last round"
        title = f"{name}, {title}" if name != UNNAMED else title.capitalize()
        blocks.append(block(title, entry["last"], name, end=True, best=best))
    return blocks


def _spec(path: Path) -> dict[str, Any]:
    try:
        value = read_json(path)
    except OSError as error:
        raise RunError(
            f"expected a run's {path.name} in {path.parent}, got none; "
            "name the folder that `fairsaoml run` wrote"
        ) from error
    except ValueError as error:
        raise RunError(f"expected JSON in {path}, got {error}; run again") from error
    if not isinstance(value, dict):
        raise RunError(f"expected a JSON object in {path}, got a {type(value).__name__}; run again")
    return tidy(value)


def _lines(path: Path) -> list[Line]:
    # Our files hold no NaN. Should one come from elsewhere, `tidy` makes it unknown.
    lines = tidy(read_rounds(path))
    if not lines:
        raise RunError(
            f"expected at least one round in {path}, got none; let the run do a round first, or "
            "give a model from Python new rows with `fairsaoml learn`: they are scored before "
            "they are learned"
        )
    for at, line in enumerate(lines, start=1):
        if not isinstance(line, dict) or not {"round", "seed", "domain", "counts"} <= line.keys():
            raise RunError(
                f"expected round, seed, domain and counts in line {at} of {path}, "
                "got something else; run again"
            )
    return sorted(lines, key=lambda line: (line["round"], line["seed"]))
