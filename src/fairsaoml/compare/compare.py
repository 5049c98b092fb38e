"""Several learners on one stream, side by side: the same rounds, the same seeds, one table.

Every learner is a run of its own, in a folder of its own; a comparison adds up what they wrote.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from statistics import median
from typing import Any

from fairsaoml.compare.engine import Job, OnEvent, run_all
from fairsaoml.core.errors import ConfigError, closest
from fairsaoml.evaluate.metrics import (
    MINIMUM_COUNT,
    GroupCounts,
    add,
    counts_from_json,
    figures,
)
from fairsaoml.evaluate.summary import summarise
from fairsaoml.files import read_json, write_json
from fairsaoml.learners import registry
from fairsaoml.report import write_report
from fairsaoml.runs.journal import read_rounds
from fairsaoml.runs.spec import RunSpec
from fairsaoml.streams.catalog import setting_names

__all__ = ["MEASURES", "RULE", "Verdict", "compare", "compared", "plan", "recovery", "verdict"]

COMPARISON, REPORT = "comparison.json", "report.html"
COMPARISON_SCHEMA = 1
RULE = 0.8  # the "80 % rule" a ratio is held against
MEASURES = ("accuracy", "balanced_accuracy", "dp_ratio", "eo_ratio")
# Which reasons of "too few" a ratio's verdict must heed.
RESTS_ON = {"dp_ratio": ("dp_ratio",), "eo_ratio": ("eo_ratio_tpr", "eo_ratio_fpr")}
EARLY_ROUNDS = 5  # "after changes" are so many rounds of every domain but the first
BACK = ("accuracy", "dp_ratio")  # what a learner has recovered when both are back
RECOVERED = 0.05  # within this much of its own figures at the domain's end

Verdict = str  # "met", "missed", "too few" or "undefined"
Line = Mapping[str, Any]


def plan(
    stream: str, learners: Sequence[str], settings: Mapping[str, Any], seeds: Sequence[int]
) -> list[RunSpec]:
    """One spec per learner. A setting goes to the stream, or to every learner that takes it.

    Someone must take it: a comparison with a setting that changes nobody is not what was asked for.

    >>> aod, fair = plan("synthetic", ["aod", "fair-glc"], {"constraints": "eo", "rows": 50}, [0])
    >>> aod.learner_settings, fair.learner_settings, fair.stream_settings
    ({}, {'constraints': 'eo'}, {'rows': 50})
    """
    of_stream = setting_names(stream)
    taken: dict[str, dict[str, Any]] = {name: {} for name in learners}
    known = list(of_stream)
    for name in learners:
        rules = {item.name: item.metadata["rule"] for item in fields(registry.entry(name).config)}
        known += rules
        for key, value in settings.items():
            if key in rules and key not in of_stream and _takes(name, key, value):
                taken[name][key] = value
    for key, value in settings.items():
        if key not in known:
            raise ConfigError(f"unknown setting {key!r}; {closest(key, set(known))}")
        if key not in of_stream and not any(key in own for own in taken.values()):
            raise ConfigError(f"none of the learners takes {key}={value!r}")
    return [
        RunSpec(
            stream=stream,
            learner=name,
            stream_settings={key: settings[key] for key in settings if key in of_stream},
            learner_settings=taken[name],
            seeds=tuple(seeds),
        )
        for name in learners
    ]


def _takes(learner: str, key: str, value: Any) -> bool:
    try:
        registry.configure(learner, {key: value})
    except ConfigError:
        return False
    return True


def compare(
    specs: Sequence[RunSpec],
    folder: Path,
    *,
    force: bool = False,
    engine: str = "local",
    workers: int = 1,
    address: str | None = None,
    on_event: OnEvent = lambda event: None,
) -> dict[str, Any]:
    """Play every spec into a folder of its own, and write `comparison.json` and `report.html`.

    A run that is there already, of the same spec, is gone on with or kept: a comparison that was
    stopped is finished by the same command. Where they are played is the engine's (`run_all`).
    """
    run_all(
        [Job(spec, folder / spec.learner) for spec in specs],
        engine=engine,
        workers=workers,
        address=address,
        force=force,
        on_event=on_event,
    )
    comparison = compared(specs, folder)
    write_json(folder / COMPARISON, comparison)
    write_report([folder / spec.learner for spec in specs], folder / REPORT)
    return read_json(folder / COMPARISON)


def compared(specs: Sequence[RunSpec], folder: Path) -> dict[str, Any]:
    """What `comparison.json` says, from the finished runs in a folder."""
    first = specs[0]
    words = ["fairsaoml", "compare", first.stream, "--learners"]
    words += [",".join(spec.learner for spec in specs)]
    words += ["--seeds", str(len(first.seeds)), "--seed", str(first.seeds[0])]
    return {
        "schema": COMPARISON_SCHEMA,
        "command": shlex.join(words + _changes(specs)),
        "stream": first.stream,
        "seeds": list(first.seeds),
        "rule": RULE,
        "minimum_count": MINIMUM_COUNT,
        "learners": [_entry(spec, folder / spec.learner) for spec in specs],
    }


def _changes(specs: Sequence[RunSpec]) -> list[str]:
    """The settings of all specs as options of the command."""
    commands = [shlex.split(spec.command) for spec in specs]
    pairs = [
        words[at + 1] for words in commands for at, word in enumerate(words) if word == "--set"
    ]
    return [word for pair in dict.fromkeys(pairs) for word in ("--set", pair)]


def _entry(spec: RunSpec, folder: Path) -> dict[str, Any]:
    """One learner's figures: everything, the end, each domain, and after changes."""
    lines = read_rounds(folder / "rounds.jsonl")
    summary = read_json(folder / "summary.json")
    domains = summary["domains"]
    ends = [_block(domain["last"]) for domain in domains]
    one = len(domains) == 1
    last_in_one = summary["last"]["rounds"][0] >= domains[-1]["rounds"][0]
    entry: dict[str, Any] = {
        "learner": spec.learner,
        "folder": folder.name,
        "settings": dict(spec.learner_settings),
        "constraints": read_json(folder / "spec.json")["learner"]["config"]["constraints"],
        # The median: one round of each padded size also compiles.
        "seconds_per_round": median(line["seconds"] for line in lines),
        "overall": _block(summary["overall"], judged=one),
        "last": _block(summary["last"], judged=last_in_one),
        "domains": [
            {"name": domain["name"], **_block(domain), "last": end}
            for domain, end in zip(domains, ends, strict=True)
        ],
        # At the domains' ends: a whole domain is also what was learned before it began.
        "rule": {name: _worst(end[name]["rule"] for end in ends) for name in RESTS_ON},
    }
    if len(domains) > 1:
        early = [
            line
            for domain in domains[1:]
            for line in lines
            if 0 <= line["round"] - domain["rounds"][0] < EARLY_ROUNDS
        ]
        plain = [{**line, "domain": "", "adapted": None} for line in early]
        block = summarise(plain, learner=spec.learner, stream=spec.stream, seeds=spec.seeds)
        entry["after_changes"] = {
            **_block(block["overall"], judged=False),
            "back_by_round": [recovery(lines, domain) for domain in domains[1:]],
        }
    return entry


def _block(block: Mapping[str, Any], *, judged: bool = True) -> dict[str, Any]:
    """A summary's block, figure by figure: pooled, mean over rounds, spread over seeds.

    Only within one domain is it `judged` by the rule: where another group is favoured in the next
    domain, a pool over both looks fair and nobody was treated so.
    """
    found: dict[str, Any] = {"rounds": block["rounds"]}
    for name in MEASURES:
        found[name] = {
            "pooled": block["pooled"][name],
            "mean": block["mean"][name],
            "spread": block["spread"][name],
            "skipped": block["skipped"].get(name, 0),
        }
        if judged and name in RESTS_ON:
            found[name]["rule"] = verdict(name, block["pooled"])
    return found


def verdict(name: str, pooled: Mapping[str, Any]) -> Verdict:
    """Whether a pooled ratio meets the rule, with enough counts to say so.

    >>> verdict("dp_ratio", {"dp_ratio": 0.85, "insufficient": []})
    'met'
    >>> few = ["dp_ratio of sex: fewer than 10 positives in 'f'"]
    >>> verdict("dp_ratio", {"dp_ratio": 0.85, "insufficient": few})
    'too few'
    """
    if pooled[name] is None:
        return "undefined"
    if any(reason.startswith(RESTS_ON[name]) for reason in pooled["insufficient"]):
        return "too few"
    return "met" if pooled[name] >= RULE else "missed"


def _worst(verdicts: Any) -> Verdict:
    found = set(verdicts)
    return next(word for word in ("missed", "undefined", "too few", "met") if word in found)


def recovery(lines: Sequence[Line], domain: Mapping[str, Any]) -> int | None:
    """The round of a domain by which two rounds in a row are nearly as good as its end, or None.

    Good is accuracy and DP, each pooled over the two rounds and all seeds. A domain's first round
    is scored before anything of it was seen; 2 is the best there is.
    """
    first, last = domain["rounds"]
    goal = domain["last"]["pooled"]
    counts = {number: _nothing() for number in range(first, last + 1)}
    for line in lines:
        if line["round"] in counts:
            counts[line["round"]] = add(counts[line["round"]], counts_from_json(line["counts"]))
    for number in range(first, last):
        found = figures(add(counts[number], counts[number + 1]))
        if all((found[name] or 0) >= (goal[name] or 0) - RECOVERED for name in BACK):
            return number + 1 - first + 1
    return None


def _nothing() -> GroupCounts:
    return {}
