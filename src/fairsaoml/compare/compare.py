"""Several learners on one stream, side by side: the same rounds, the same seeds, one table.

Every learner is a run in a folder of its own; a comparison summarises what they wrote.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median, stdev
from typing import Any

from fairsaoml.compare.engine import Job, run_all
from fairsaoml.core.errors import ConfigError, closest
from fairsaoml.evaluate.confidence import Interval
from fairsaoml.evaluate.metrics import FIGURES, figures, pooled
from fairsaoml.evaluate.rule import RULE, worst, worst_judged
from fairsaoml.evaluate.summary import summarise
from fairsaoml.evaluate.verdict import Asked, answer_of, first_judged, judge
from fairsaoml.files import read_json, write_json
from fairsaoml.learners import registry
from fairsaoml.report import write_report
from fairsaoml.runs.journal import read_rounds
from fairsaoml.runs.spec import RunSpec, pairs
from fairsaoml.streams.catalog import setting_names

COMPARISON, REPORT = "comparison.json", "report.html"
COMPARISON_SCHEMA = 1
MEASURES = ("accuracy", "balanced_accuracy", "dp_ratio", "eo_ratio")
NOTIONS = {"dp_ratio": "dp", "eo_ratio": "eo"}
# A notion of a verdict where there are no groups.
UNGROUPED: Mapping[str, Any] = {"ratio": None, "low": 0.0, "high": 1.0, "rounds": []}
BY_ANSWER = {"fair": "met", "not fair": "missed", "too few": "too few"}  # of the 80 % rule
EARLY_ROUNDS = 5  # "after changes" are so many rounds of every domain but the first
BACK = ("accuracy", "dp_ratio")  # a learner has recovered when both are back
RECOVERED = 0.05  # within this much of its own figures at the domain's end

Line = Mapping[str, Any]


def plan(
    stream: str, learners: Sequence[str], settings: Mapping[str, Any], seeds: Sequence[int]
) -> list[RunSpec]:
    """Return one spec per learner.

    Args:
        stream: a stream's name, or a table's file.
        learners: registered names, each once.
        settings: each goes to the stream, or to every learner that accepts it.
        seeds: the same for all.

    Raises:
        ConfigError: an unknown name, a learner named twice, or a setting that changes nothing.

    >>> aod, fair = plan("synthetic", ["aod", "fair-glc"], {"constraints": "eo", "rows": 50}, [0])
    >>> aod.learner_settings, fair.learner_settings, fair.stream_settings
    ({}, {'constraints': 'eo'}, {'rows': 50})
    """
    if len(set(learners)) < len(learners):
        raise ConfigError(f"expected each learner once, got {','.join(learners)}")
    of_stream = setting_names(stream)
    known = [*of_stream, *(key for name in learners for key in registry.entry(name).settings)]
    rest = {key: value for key, value in settings.items() if key not in of_stream}
    specs = [
        RunSpec(
            stream=stream,
            learner=name,
            stream_settings={key: settings[key] for key in settings if key in of_stream},
            learner_settings={key: rest[key] for key in rest if _accepts(name, key, rest[key])},
            seeds=tuple(seeds),
        )
        for name in learners
    ]
    for key, value in rest.items():
        if key not in known:
            raise ConfigError(f"unknown setting {key!r}; {closest(key, known)}")
        if not any(key in spec.learner_settings for spec in specs):
            raise ConfigError(f"none of the learners takes {key}={value!r}")
    return specs


def _accepts(learner: str, key: str, value: Any) -> bool:
    try:
        registry.configure(learner, {key: value})
    except ConfigError:
        return False
    return True


def compare(specs: Sequence[RunSpec], folder: Path, **how: Any) -> dict[str, Any]:
    """Run every spec into a folder of its own, and write `comparison.json` and `report.html`.

    Finished runs are kept and stopped ones continued: the same call finishes a comparison.

    Args:
        specs: what to run, as `plan` returns it.
        folder: for all of them.
        how: `force`, `engine`, `workers`, `address` and `on_event`, as in `run_all`.

    Returns:
        The content of `comparison.json`.
    """
    folders = [folder / spec.learner for spec in specs]
    run_all(list(map(Job, specs, folders)), **how)
    write_json(folder / COMPARISON, comparison_of(specs, folder))
    write_report(folders, folder / REPORT)
    return read_json(folder / COMPARISON)


def comparison_of(specs: Sequence[RunSpec], folder: Path) -> dict[str, Any]:
    """Return the content of `comparison.json` for the finished runs in a folder."""
    first = specs[0]
    words = ["fairsaoml", "compare", first.stream, "--learners"]
    words += [",".join(spec.learner for spec in specs)]
    words += ["--seeds", str(len(first.seeds)), "--seed", str(first.seeds[0])]
    settings = [{**spec.stream_settings, **spec.learner_settings} for spec in specs]
    return {
        "schema": COMPARISON_SCHEMA,
        "command": command_of(words, (pair for some in settings for pair in pairs(some))),
        "stream": first.stream,
        "seeds": list(first.seeds),
        "rule": RULE,
        "learners": [_entry(spec, folder / spec.learner) for spec in specs],
    }


def command_of(words: Sequence[str], pairs: Iterable[str]) -> str:
    """Return a command with its settings, each once.

    >>> command_of(["fairsaoml", "peers", "my loans.csv"], ["rows=50", "rows=50"])
    "fairsaoml peers 'my loans.csv' --set rows=50"
    """
    options = [word for pair in dict.fromkeys(pairs) for word in ("--set", pair)]
    return shlex.join([*words, *options])


def _entry(spec: RunSpec, folder: Path) -> dict[str, Any]:
    """One learner's figures: over all rounds, at the end, in each domain, and after changes."""
    lines = read_rounds(folder / "rounds.jsonl")
    summary = read_json(folder / "summary.json")
    own_spec = read_json(folder / "spec.json")
    asked, later = Asked.of(own_spec), summary["domains"][1:]
    domains = [
        {"name": domain["name"], **_block(domain), "last": _end(lines, domain, asked)}
        for domain in summary["domains"]
    ]
    overall, spread = _block(summary["overall"]), pooled_spread(lines)
    for name in MEASURES:
        overall[name]["pooled_spread"] = spread[name]
    entry: dict[str, Any] = {
        "learner": spec.learner,
        "folder": folder.name,
        "settings": dict(spec.learner_settings),
        "constraints": own_spec["learner"]["config"]["constraints"],
        # The median: one round of each padded size also compiles.
        "seconds_per_round": median(line["seconds"] for line in lines),
        "overall": overall,
        "last": _block(summary["last"]),
        "domains": domains,
        # At the domains' ends: a whole domain also shows what was learned before it began.
        "rule": {name: worst(one["last"][name]["rule"] for one in domains) for name in NOTIONS},
    }
    if later:
        early = [
            {**line, "domain": "", "adapted": None}
            for domain in later
            for line in lines
            if 0 <= line["round"] - domain["rounds"][0] < EARLY_ROUNDS
        ]
        block = summarise(early, learner=spec.learner, stream=spec.stream, seeds=spec.seeds)
        entry["after_changes"] = {
            **_block(block["overall"]),
            "back_by_round": [recovery(lines, domain) for domain in later],
        }
    return entry


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    """A summary's block, figure by figure: pooled, mean over rounds, spread over seeds."""
    measures = {
        name: {key: block[key][name] for key in ("pooled", "mean", "spread")}
        | {"skipped": block["skipped"].get(name, 0)}
        for name in MEASURES
    }
    return {"rounds": block["rounds"], **measures}


def pooled_spread(lines: Sequence[Line]) -> dict[str, float | None]:
    """The standard deviation over seeds of each seed's pooled figures; None for a single seed."""
    seeds = dict.fromkeys(line["seed"] for line in lines)
    of_seeds = [figures(pooled(one for one in lines if one["seed"] == seed)) for seed in seeds]
    values = {name: [one[name] for one in of_seeds if one[name] is not None] for name in FIGURES}
    return {name: stdev(known) if len(known) > 1 else None for name, known in values.items()}


def _end(lines: Sequence[Line], domain: Mapping[str, Any], asked: Asked) -> dict[str, Any]:
    """A domain's last rounds; its ratios are those of the verdict on it, held to the 80 % rule.

    The verdict is that of the run's page, on a domain alone: on as many of its latest windows as
    it takes to tell, whose `rounds` stand beside the ratio.
    """
    first, last = domain["rounds"]
    begin = min(first - 1 + first_judged(last - first + 1), last)
    verdict = judge([line for line in lines if begin <= line["round"] <= last], asked)
    end = _block(domain["last"])
    for name, notion in NOTIONS.items():
        judged = [entry["notions"][notion] for entry in verdict["attributes"].values()]
        end[name] |= worst_judged(map(_by_rule, judged or [UNGROUPED]))
    return end


def _by_rule(notion: Mapping[str, Any]) -> dict[str, Any]:
    """A notion of a verdict, held to the 80 % rule, whatever ratio was asked for."""
    ratio, low, high = (notion[key] for key in ("ratio", "low", "high"))
    answer = BY_ANSWER[answer_of(ratio, Interval(low, high), RULE)]
    rule = "undefined" if ratio is None else answer
    return {"ratio": ratio, "low": low, "high": high, "rounds": notion["rounds"], "rule": rule}


def recovery(lines: Sequence[Line], domain: Mapping[str, Any]) -> int | None:
    """Return the round of a domain by which a learner has recovered from the change, or None.

    It has recovered when accuracy and DP of two rounds in a row, pooled over both and all seeds,
    are nearly those of the domain's end. A domain's first round is scored before anything of it was
    seen; 2 is the best possible.
    """
    first, last = domain["rounds"]
    goal = domain["last"]["pooled"]
    for number in range(first, last):
        both = figures(pooled(line for line in lines if line["round"] in (number, number + 1)))
        if all((both[name] or 0) >= (goal[name] or 0) - RECOVERED for name in BACK):
            return number + 1 - first + 1
    return None
