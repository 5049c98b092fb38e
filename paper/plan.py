"""The paper's evaluation as data: each figure and table, and the runs it is made of.

A run is kept under a name that holds a hash of all its settings, defaults included. So figures that
need the same run share it, a second call only draws, and a changed default is another run.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fairsaoml.compare.compare import plan
from fairsaoml.compare.engine import Job
from fairsaoml.core.errors import ConfigError, closest
from fairsaoml.learners import registry
from fairsaoml.runs.spec import RunSpec
from paper.settings import settings_for

__all__ = [
    "BASES",
    "BOUND_LENGTHS",
    "COVER",
    "EXHIBITS",
    "LEARNERS",
    "OURS",
    "PAPER",
    "STREAMS",
    "Choice",
    "Exhibit",
    "Variant",
    "digest",
    "exhibit",
    "folder_of",
    "jobs_of",
    "spec_of",
]

STREAMS = ("movielens", "stop-and-frisk:BMS", "stop-and-frisk:RQS")
PAPER = ("fairsaoml", "mask-ftml", "fair-fml", "fair-aogd", "fair-glc", "aod", "cbce")
OURS = ("fairsaoml-decoupled",)  # beyond the paper
LEARNERS = (*OURS, *PAPER)
SEEDS = 10
COVER = {"horizon": 18, "base": 2, "round": 5}  # figure 1: all intervals, and C_5 among them
BASES = (2, 3, 4, 5)
# Of the paper's grids: the smallest delta and lambda_0, and a step that learns.
_GRIDS = {"dual_damping": 10.0, "initial_dual": 1e-5, "meta_primal_step": 0.1}
_FRISKED = {**_GRIDS, "base": 2, "support": 400, "query": 400, "capacity": 2000}
PRINTED: dict[str, dict[str, Any]] = {
    "movielens": {**_GRIDS, "base": 3, "support": 100, "query": 100},
    "stop-and-frisk:BMS": _FRISKED,
    "stop-and-frisk:RQS": _FRISKED,
}
BOUND_LENGTHS = (64, 128, 256, 512, 1024, 2048)  # horizons that growth is fitted over
LONGEST_NAME = 60


class Variant(NamedTuple):
    """A line of a figure or a row of a table: a learner, and the settings that are changed."""

    label: str
    learner: str
    changes: Mapping[str, Any] = {}
    printed: bool = False  # with what the paper names for the stream, not what a search chose


class Exhibit(NamedTuple):
    """A figure or a table: what it shows, in words and as variants; each on every stream."""

    name: str
    title: str
    caption: str
    variants: Sequence[Variant] = ()
    narrowed: bool = False  # whether `--learners` chooses among its variants
    has_runs: bool = False  # whether its variants are runs, kept in folders
    table: str = ""  # the name of its table, where that is not its own

    @property
    def table_name(self) -> str:
        return self.table or self.name


EVERYONE = tuple(Variant(name, name) for name in LEARNERS)
EXHIBITS: dict[str, Exhibit] = {
    exhibit.name: exhibit
    for exhibit in (
        Exhibit(
            "figure-1",
            "Figure 1: intervals of the adaptive geometric cover",
            "Every bar is an interval and the life of an expert; a level's intervals have the "
            "same length. Marked: the target set C_5, the intervals that start in round 5.",
        ),
        Exhibit(
            "figure-3",
            "Figure 3: fairness and accuracy by round, and the experts' weights",
            "Each point is the mean of the last five rounds of the same domain, over all seeds; "
            "a round in which a ratio is undefined for every seed is a gap. Bands, for our "
            "learners and the paper's: from the lowest seed to the highest. The dotted uprights "
            "are changes of domain, the heavy line is the 80 % rule. Below: the weights of the "
            "paper's experts, from the shortest intervals (light) to the longest (dark), "
            "not smoothed.",
            EVERYONE,
            narrowed=True,
            has_runs=True,
            table="quality",
        ),
        Exhibit(
            "figure-3-printed",
            "Figure 3 with the paper's settings",
            "As figure 3, with what the paper names: base 3 and 100 rows a class on MovieLens, "
            "base 2 and 400 on stop-and-frisk, one constraint; of its grids delta 10, lambda_0 "
            "1e-5 and steps of .1; the rest at its default. Not to be had: which values of its "
            "grids it chose; 800 rows a class in tasks of 232 to 728, so draws take what there is; "
            "its 111 features, which it does not name; tasks of ten days; its label, both frisked "
            "and weapon; its order of boroughs by unfairness.",
            tuple(Variant(name, name, printed=True) for name in PAPER),
            has_runs=True,
            table="quality-printed",
        ),
        Exhibit(
            "ablation",
            "Ablation: without weights, without a base learner, with other intervals",
            "The paper's learner whole, with equal weights, with experts that do not adapt, and "
            "with the follow-up's intervals: blocks from round base^k on (doubling), or one from "
            "every round on, about log t kept (dynamic). Points, gaps and bands as in figure 3.",
            (
                Variant("whole", "fairsaoml"),
                Variant("no weights", "fairsaoml", {"combiner": "uniform"}),
                Variant("no base learner", "fairsaoml", {"inner_steps": 0}),
                Variant("doubling", "fairsaoml", {"cover": "doubling"}),
                Variant("dynamic", "fairsaoml", {"cover": "dynamic"}),
            ),
            has_runs=True,
        ),
        Exhibit(
            "base",
            "Base of the intervals, 2 to 5",
            "The paper's learner with intervals of lengths base^k. Last ten rounds of each "
            "domain, pooled over rounds and seeds; whiskers: ± the standard deviation over seeds.",
            tuple(Variant(f"base {base}", "fairsaoml", {"base": base}) for base in BASES),
            has_runs=True,
        ),
        Exhibit(
            "runtime",
            "Running time",
            "Milliseconds of a round of one seed, scoring included: the median of the rounds, "
            "whiskers at the quartiles. All learners at their defaults, so at the same number of "
            "gradient samples a round; one process at a time, compilation apart.",
            EVERYONE,
            narrowed=True,
        ),
        Exhibit(
            "bounds",
            "Bounds, and the growth that was measured",
            "Linear model, on a stream that meets the assumptions.",
            EVERYONE[len(OURS) :],  # ours keep ratios of decisions, which no bound is about
            narrowed=True,
        ),
    )
}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How much of the evaluation to do; by default all of it."""

    streams: Sequence[str] = STREAMS
    learners: Sequence[str] = LEARNERS
    seeds: int = SEEDS
    settings: Mapping[str, Any] = field(default_factory=dict)  # for whoever takes them

    def options(self) -> list[str]:
        """Return the options of the command.

        >>> Choice(seeds=2, streams=["synthetic"]).options()
        ['--streams', 'synthetic', '--seeds', '2']
        """
        words: list[str] = []
        if tuple(self.streams) != STREAMS:
            words += ["--streams", ",".join(self.streams)]
        if tuple(self.learners) != LEARNERS:
            words += ["--learners", ",".join(self.learners)]
        if self.seeds != SEEDS:
            words += ["--seeds", str(self.seeds)]
        for key, value in self.settings.items():
            words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
        return words

    def variants(self, exhibit: Exhibit) -> list[Variant]:
        """Return an exhibit's variants, of the chosen learners."""
        if not exhibit.narrowed:
            return list(exhibit.variants)
        unsuited = [variant.label for variant in EVERYONE if variant not in exhibit.variants]
        return [Variant(name, name) for name in self.learners if name not in unsuited]


def exhibit(name: str) -> Exhibit:
    """Return an exhibit by name; ConfigError with the closest name if there is none."""
    if name not in EXHIBITS:
        raise ConfigError(f"unknown exhibit {name!r}; {closest(name, ['all', *EXHIBITS])}")
    return EXHIBITS[name]


def spec_of(variant: Variant, stream: str, choice: Choice, *, tuned: bool = True) -> RunSpec:
    """Return the run of a variant on a stream: tuned or printed settings, then its changes.

    A setting that is the learner's default is left out: `base 2` is the plain learner's run.

    >>> uneven = {"combiner": "ada-normal-hedge", "inner_steps": 0}
    >>> spec = spec_of(Variant("uneven", "fairsaoml", uneven), "synthetic", Choice(seeds=2))
    >>> spec.learner_settings["inner_steps"], "combiner" in spec.learner_settings, spec.seeds
    (0, False, (0, 1))
    """
    everyone = tuple(dict.fromkeys([variant.learner, *choice.learners, *PAPER]))
    written = json.dumps(choice.settings, sort_keys=True)
    plain = _planned(stream, tuple(sorted(everyone)), written, choice.seeds)[variant.learner]
    defaults = registry.configure(variant.learner).to_dict()
    # The paper's m is 1.
    printed = {**PRINTED.get(stream, {}), "constraints": defaults["constraints"]}
    asked = {
        **(settings_for(variant.learner, stream) if tuned and not variant.printed else {}),
        **plain.learner_settings,
        **{key: value for key, value in printed.items() if variant.printed and key in defaults},
        **variant.changes,
    }
    changed = {key: value for key, value in asked.items() if defaults.get(key, ...) != value}
    return replace(plain, learner_settings=changed)


@cache
def _planned(stream: str, learners: Sequence[str], settings: str, seeds: int) -> dict[str, RunSpec]:
    """The plain specs of all learners; a setting goes to those that take it."""
    specs = plan(stream, learners, json.loads(settings), range(seeds))
    return {spec.learner: spec for spec in specs}


def folder_of(spec: RunSpec, out: Path) -> Path:
    """Return where a run is kept: readable names, and a hash of its whole spec.

    >>> spec = RunSpec(stream="stop-and-frisk:BMS", learner="aod", seeds=(0,))
    >>> folder_of(spec, Path("paper")).as_posix().rpartition("-")[0]
    'paper/runs/stop-and-frisk-BMS/aod'
    """
    words = [f"{key}-{value}" for key, value in spec.learner_settings.items()]
    name = "-".join([spec.learner, *words])
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", name)[:LONGEST_NAME].strip("-")
    stream = re.sub(r"[^A-Za-z0-9.]+", "-", Path(spec.stream).name)
    return out / "runs" / stream / f"{readable}-{digest(spec)}"


def digest(spec: RunSpec) -> str:
    """Return a short hash of a spec, with all settings of the learner, defaults included."""
    settings = registry.configure(spec.learner, spec.learner_settings).to_dict()
    content = {**asdict(spec), "learner_settings": settings}
    written = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()[:8]


def jobs_of(exhibits: Sequence[Exhibit], choice: Choice, out: Path) -> list[Job]:
    """Return the runs that some exhibits need, each once."""
    specs = [
        spec_of(variant, stream, choice)
        for exhibit in exhibits
        if exhibit.has_runs
        for stream in choice.streams
        for variant in choice.variants(exhibit)
    ]
    by_folder = {folder_of(spec, out): spec for spec in specs}
    return [Job(spec, folder) for folder, spec in by_folder.items()]
