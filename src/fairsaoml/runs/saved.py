"""A run opened again from its folder: its learner as it was, and what it has learned."""

import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax

from fairsaoml.core.errors import ConfigError, RunError
from fairsaoml.core.keys import run_keys
from fairsaoml.core.types import State
from fairsaoml.evaluate.prequential import first_states
from fairsaoml.files import read_json, seal_of, tidy
from fairsaoml.runs.checkpoint import CURRENT, Checkpoint, load_checkpoint
from fairsaoml.runs.folder import CHECKPOINT, ROUNDS, SEAL, SERVED, SERVICE, SPEC, read_spec
from fairsaoml.runs.journal import DIGEST, is_intact, whole_rounds
from fairsaoml.runs.spec import RunSpec, Setup, stream_without_rows, versions

__all__ = [
    "last_checkpoint",
    "load_run",
    "load_spec",
    "manifest_of",
    "name_other_versions",
    "name_service",
    "saved_setup",
    "served_round",
    "states_like",
]

OWN = ("learner", "stream", "seeds")  # of spec.json: what a checkpoint must have been made with


def load_spec(folder: Path) -> RunSpec:
    """The spec of the run in a folder."""
    return RunSpec.from_json(read_spec(folder))


def load_run(folder: Path) -> tuple[RunSpec, Setup, Checkpoint]:
    """A run and what it has learned, from its folder alone: the stream of the setup has no rows."""
    content = read_spec(folder)
    spec = RunSpec.from_json(content)
    name_other_versions(content)
    setup = saved_setup(content, stream_without_rows(content["stream"]))
    checkpoint = _checkpoint(spec, setup, folder, content)
    if checkpoint is None:
        raise RunError(f"the run in {folder} has not learned anything yet; let it run on")
    return spec, setup, checkpoint


def saved_setup(content: dict[str, Any], stream: Any) -> Setup:
    """The learner of a spec.json, with all its settings as they were."""
    try:
        return Setup.of(RunSpec.from_json(content), stream, content["learner"]["config"])
    except ConfigError as error:
        made = ", ".join(f"{name} {number}" for name, number in content["versions"].items())
        raise RunError(
            f"the run's learner cannot be made: {error}; the run was made by {made}"
        ) from None


def name_other_versions(content: dict[str, Any]) -> None:
    """Warn where a run was made by other versions: its figures may differ from theirs."""
    made = content.get("versions", {})
    now = versions(*(name for name in made if name not in ("fairsaoml", "python")))
    other = [f"{name} {made[name]} (now {now[name]})" for name in made if made[name] != now[name]]
    if other:
        warnings.warn(
            f"the run was made with {', '.join(other)}: figures may differ in their last digits",
            stacklevel=3,
        )


def served_round(folder: Path) -> int:
    """The round up to which the service of a run's folder has learned; 0 where there is none."""
    with suppress(OSError, RunError, ValueError, KeyError, TypeError):
        return int(read_json(folder / SERVICE / SERVED / CURRENT)["round"])
    return 0


def name_service(folder: Path, round: int) -> None:
    """Warn where a service has learned more than the run's own model of that round knows."""
    served = served_round(folder)
    if served > round:
        warnings.warn(
            f"the service in {folder} has learned to round {served}, this is the run's own model "
            f"of round {round}; ask the service (`fairsaoml serve {folder}`) for the newer one",
            stacklevel=3,
        )


def last_checkpoint(
    spec: RunSpec, setup: Setup, folder: Path, content: dict[str, Any]
) -> Checkpoint | None:
    """The newest checkpoint whose rounds are all in the journal, as they were written.

    The journal is written before a checkpoint is, so only damage makes it the shorter one.
    """
    newest = usable = _checkpoint(spec, setup, folder, content)
    journal = folder / ROUNDS
    journalled = whole_rounds(journal, len(spec.seeds), content.get("before", 0))
    while usable and not (
        usable.round <= journalled and is_intact(journal, usable.round, usable.manifest.get(DIGEST))
    ):
        usable = _checkpoint(spec, setup, folder, content, at_most=usable.round - 1)
    if newest and usable is not newest:
        warnings.warn(
            f"{journal} is damaged: it does not hold the {newest.round} rounds that were saved; "
            f"continuing after round {usable.round if usable else 0}",
            stacklevel=3,
        )
    return usable


def _checkpoint(
    spec: RunSpec,
    setup: Setup,
    folder: Path,
    content: dict[str, Any],
    *,
    at_most: int | None = None,
) -> Checkpoint | None:
    def require_own(manifest: dict[str, Any]) -> None:
        # A spec.json of an earlier version, which has no seal, may have fewer digits.
        alike = (lambda value: value) if SEAL in manifest else tidy
        for part in OWN:
            if part in manifest and alike(manifest[part]) != alike(content[part]):
                raise RunError(
                    f"{folder / SPEC} and the run's checkpoint differ in {part}: it was changed "
                    "since; put it back, or start again with --force"
                )

    like = states_like(spec, setup)
    return load_checkpoint(folder / CHECKPOINT, like, at_most=at_most, check=require_own)


def states_like(spec: RunSpec, setup: Setup) -> State:
    """The structure of all seeds' states; nothing is computed."""
    return jax.eval_shape(lambda keys: first_states(setup.learner, keys), run_keys(spec.seeds))


def manifest_of(content: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint says of the run it belongs to."""
    return {key: content[key] for key in (*OWN, "versions")} | {SEAL: seal_of(content)}
