"""A run opened again from its folder: its learner as it was, and what it has learned."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import jax

from fairsaoml.core.errors import ConfigError, RunError, warn
from fairsaoml.core.types import State
from fairsaoml.evaluate.seeds import first_states
from fairsaoml.files import read_json, seal_of, tidy
from fairsaoml.runs.checkpoint import CURRENT, Checkpoint, load_checkpoint
from fairsaoml.runs.folder import CHECKPOINT, ROUNDS, SEAL, SERVED, SERVICE, SPEC, read_spec
from fairsaoml.runs.journal import DIGEST, is_intact, whole_rounds
from fairsaoml.runs.spec import RunSpec, Setup, stream_without_rows, versions
from fairsaoml.streams.stream import Stream

OWN = ("learner", "stream", "seeds")  # of spec.json: what a checkpoint must have been made with


def load_spec(folder: Path) -> RunSpec:
    """The spec of the run in a folder."""
    return RunSpec.from_json(read_spec(folder))


class OpenRun(NamedTuple):
    """A run's folder, what its spec.json says, and the same made real."""

    folder: Path
    content: dict[str, Any]
    spec: RunSpec
    setup: Setup

    @classmethod
    def of(
        cls,
        folder: Path,
        content: dict[str, Any],
        stream_of: Callable[[Mapping[str, Any]], Stream] = stream_without_rows,
    ) -> "OpenRun":
        """The run of a spec.json, its learner with all settings as they were.

        Args:
            folder: the run's.
            content: of its spec.json.
            stream_of: from what it says of the stream to that; by default one without rows, which
                is enough to score new ones.

        Raises:
            RunError: this version cannot make the learner.
        """
        spec = RunSpec.from_json(content)
        stream = stream_of(content["stream"])
        try:
            setup = Setup.of(spec, stream, content["learner"]["config"])
        except ConfigError as error:
            made = ", ".join(f"{name} {number}" for name, number in content["versions"].items())
            raise RunError(
                f"the run's learner cannot be made: {error}; the run was made by {made}"
            ) from None
        return cls(folder, content, spec, setup)

    def newest_checkpoint(
        self, folder: Path | None = None, *, at_most: int | None = None
    ) -> Checkpoint | None:
        """The newest checkpoint, of its folder or another; RunError where it is not its own."""
        folder, like = folder or self.folder / CHECKPOINT, states_like(self.spec, self.setup)
        return load_checkpoint(folder, like, at_most=at_most, check=self._require_own)

    def _require_own(self, manifest: dict[str, Any]) -> None:
        # A spec.json of an earlier version, which has no seal, may have fewer digits.
        alike = (lambda value: value) if SEAL in manifest else tidy
        for part in OWN:
            if part in manifest and alike(manifest[part]) != alike(self.content[part]):
                raise RunError(
                    f"{self.folder / SPEC} and the run's checkpoint differ in {part}: it was "
                    "changed since; put it back, or start again with --force"
                )

    def last_checkpoint(self) -> Checkpoint | None:
        """The newest checkpoint whose rounds are all in the journal, as they were written.

        The journal is written before a checkpoint is, so only damage makes it the shorter one.
        """
        newest = usable = self.newest_checkpoint()
        journal = self.folder / ROUNDS
        journalled = whole_rounds(journal, len(self.spec.seeds), self.content.get("before", 0))
        while usable and not (
            usable.round <= journalled
            and is_intact(journal, usable.round, usable.manifest.get(DIGEST))
        ):
            usable = self.newest_checkpoint(at_most=usable.round - 1)
        if newest and usable is not newest:
            warn(
                f"{journal} is damaged: it does not hold the {newest.round} rounds that were "
                f"saved; continuing after round {usable.round if usable else 0}"
            )
        return usable


def load_run(folder: Path) -> tuple[RunSpec, Setup, Checkpoint]:
    """A run and what it has learned, from its folder alone: the stream of the setup has no rows."""
    content = read_spec(folder)
    name_other_versions(content)
    run = OpenRun.of(folder, content)
    checkpoint = run.newest_checkpoint()
    if checkpoint is None:
        raise RunError(f"the run in {folder} has not learned anything yet; let it run on")
    return run.spec, run.setup, checkpoint


def name_other_versions(content: dict[str, Any]) -> None:
    """Warn where a run was made by other versions: its figures may differ from theirs."""
    made = content.get("versions", {})
    now = versions(*(name for name in made if name not in ("fairsaoml", "python")))
    other = [f"{name} {made[name]} (now {now[name]})" for name in made if made[name] != now[name]]
    if other:
        warn(f"the run was made with {', '.join(other)}: figures may differ in their last digits")


def served_round(folder: Path) -> int:
    """The round up to which the service of a run's folder has learned; 0 where there is none."""
    with suppress(OSError, RunError, ValueError, KeyError, TypeError):
        return int(read_json(folder / SERVICE / SERVED / CURRENT)["round"])
    return 0


def name_service(folder: Path, round: int) -> None:
    """Warn where a service has learned more than the run's own model of that round knows."""
    served = served_round(folder)
    if served > round:
        warn(
            f"the service in {folder} has learned to round {served}, this is the run's own model "
            f"of round {round}; ask the service (`fairsaoml serve {folder}`) for the newer one"
        )


def states_like(spec: RunSpec, setup: Setup) -> State:
    """The structure of all seeds' states; nothing is compiled."""
    if setup.learner.turn:
        return first_states(setup.learner, spec.seeds)
    return jax.eval_shape(lambda: first_states(setup.learner, spec.seeds))


def manifest_of(content: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint says of the run it belongs to."""
    return {key: content[key] for key in (*OWN, "versions")} | {SEAL: seal_of(content)}
