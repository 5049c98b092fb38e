"""Peers in folders as our runs are: planned, played, kept when finished, set side by side."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

from fairsaoml.compare.alternatives import catalog
from fairsaoml.compare.alternatives.game import AlternativeSetup, prequential
from fairsaoml.compare.compare import compared
from fairsaoml.core.errors import ConfigError, RunError, closest
from fairsaoml.evaluate.records import RoundResult
from fairsaoml.evaluate.summary import summarise
from fairsaoml.files import read_json, tidy, write_json
from fairsaoml.runs.journal import Journal, read_rounds
from fairsaoml.runs.runner import ROUNDS, SPEC, SUMMARY, is_finished, prepare
from fairsaoml.runs.spec import SPEC_SCHEMA, RunSpec, stream_to_json
from fairsaoml.streams.catalog import open_stream, setting_names
from fairsaoml.streams.stream import Stream

__all__ = ["OnRound", "PeerSpec", "beside", "plan", "play"]

OnRound = Callable[[AlternativeSetup, RoundResult], None]


@dataclass(frozen=True, kw_only=True)
class PeerSpec:
    """A stream, a peer, what is changed of their defaults, and the seeds."""

    stream: str
    peer: str
    stream_settings: Mapping[str, Any] = field(default_factory=dict)
    peer_settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: Sequence[int] = (0,)
    trials: int = 0  # by which the settings were searched for; 0: they are the library's

    @property
    def label(self) -> str:
        """The row's name and its folder's: says what a reader must not overlook.

        >>> PeerSpec(stream="movielens", peer="expgrad", peer_settings={"every": 4}).label
        'expgrad-every-4'
        """
        every = self.peer_settings.get("every", 1)
        return self.peer + f"-every-{every}" * (every > 1) + "-tuned" * (self.trials > 0)

    @property
    def row(self) -> RunSpec:
        """The same as a run among ours."""
        return RunSpec(
            stream=self.stream,
            learner=self.label,
            stream_settings=self.stream_settings,
            learner_settings=self.peer_settings,
            seeds=tuple(self.seeds),
        )

    def to_json(self, stream: Stream) -> dict[str, Any]:
        """The content of spec.json; the rest of it is as our learners write it."""
        found = catalog.CATALOG[self.peer]
        return {
            "schema": SPEC_SCHEMA,
            "name": self.label,
            "command": command([self]),
            "learner": {
                "name": self.label,
                "config": {
                    "what": catalog.words(self.peer, self.peer_settings, stream.schema),
                    "constraints": found.constraints,
                    **catalog.defaults(self.peer),
                    **self.peer_settings,
                    "tuning_trials": self.trials,
                },
                "settings": dict(self.peer_settings),
            },
            "stream": stream_to_json(self.stream, self.stream_settings, stream),
            "constraints": [],
            "seeds": list(self.seeds),
            "versions": {
                **{name: version(name) for name in ("fairsaoml", found.package, "numpy")},
                "python": python_version(),
            },
        }


def command(specs: Sequence[PeerSpec]) -> str:
    """The command that repeats these rows."""
    first = specs[0]
    peers = ",".join(dict.fromkeys(one.peer for one in specs))
    words = ["fairsaoml", "peers", first.stream, "--peers", peers]
    words += ["--seeds", str(max(len(one.seeds) for one in specs))]
    every = max(one.peer_settings.get("every", 1) for one in specs)
    words += ["--every", str(every)] * (every > 1)
    trials = max(one.trials for one in specs)
    words += ["--tuned", "--trials", str(trials)] * (trials > 0)
    # A run's command spells the stream's settings as they are typed.
    spelled = shlex.split(RunSpec(stream="", stream_settings=first.stream_settings).command)
    return shlex.join([*words, *spelled[spelled.index("--seed") + 2 :]])


def plan(
    stream: str,
    peers: Sequence[str],
    *,
    stream_settings: Mapping[str, Any] | None = None,
    seeds: Sequence[int] = (0,),
    every: int = 1,
) -> list[PeerSpec]:
    """One spec per peer, library defaults. A peer that repeats itself has one seed only.

    `every` > 1 goes to those that are refitted: they keep each fit for so many rounds.
    """
    settings = dict(stream_settings or {})
    for key in settings:
        if key not in (known := setting_names(stream)):
            raise ConfigError(f"unknown setting {key!r} of {stream}; {closest(key, known)}")
    if every < 1:
        raise ConfigError(f"expected to refit every 1 or more rounds, got {every}")
    listings = [catalog.listing(name) for name in peers]
    seeded = open_stream(stream, settings).seeded
    return [
        PeerSpec(
            stream=stream,
            peer=name,
            stream_settings=settings,
            peer_settings={"every": every}
            if every > 1 and "every" in catalog.defaults(name)
            else {},
            seeds=tuple(seeds if seeded or listing.random else seeds[:1]),
        )
        for name, listing in zip(peers, listings, strict=True)
    ]


def play(
    spec: PeerSpec, folder: Path, *, force: bool = False, on_round: OnRound | None = None
) -> dict[str, Any]:
    """Play one peer into a folder and return its summary; one finished of this spec is kept.

    Libraries' learners cannot be saved without pickle: one that was stopped starts anew.
    """
    stream = open_stream(spec.stream, spec.stream_settings)
    content = tidy(spec.to_json(stream))
    if (folder / SPEC).exists() and not force:
        if not _same(read_json(folder / SPEC), content):
            raise RunError(
                f"{folder} holds another run; replace it by --force, or give another --out"
            )
        if is_finished(folder):
            return read_json(folder / SUMMARY)
    prepare(folder, force=True)
    write_json(folder / SPEC, content)
    game = AlternativeSetup(
        stream=stream, peer=spec.peer, settings=spec.peer_settings, seeds=tuple(spec.seeds)
    )
    with Journal(folder / ROUNDS) as journal:
        for played in prequential(game):
            journal.append(played.records)
            if on_round:
                on_round(game, played)
    summary = summarise(
        read_rounds(folder / ROUNDS),
        learner=spec.label,
        stream=spec.stream,
        seeds=list(spec.seeds),
        best=stream.best,
    )
    write_json(folder / SUMMARY, summary)
    return read_json(folder / SUMMARY)


def beside(specs: Sequence[PeerSpec], folder: Path) -> dict[str, Any]:
    """Finished peers as `comparison.json` has our learners, each with a word on what it is."""
    found = compared([spec.row for spec in specs], folder)
    entries = [
        entry | {"what": read_json(folder / entry["folder"] / SPEC)["learner"]["config"]["what"]}
        for entry in found["learners"]
    ]
    return found | {"command": command(specs), "learners": entries}


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two spec.json ask for the same, whatever the versions that answered."""
    return {**one, "versions": None} == {**other, "versions": None}
