"""One setting for all tests: strict types, one cache of compiled programs, nothing at random."""

import gc
import os
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import hypothesis
import jax
import pytest
from hypothesis.configuration import set_hypothesis_home_dir

import shapes

if os.environ.get("FAIRSAOML_SHAPES"):  # `make shapes`
    shapes.enforce()  # before the first import of what it changes

import sharing
import tiny
from fairsaoml.cli import main
from fairsaoml.evaluate.compilation import use_cache
from fairsaoml.evaluate.threads import one_thread
from fairsaoml.runs.runner import run

# The files that take longest, in their order: begun first, so that no worker is left with one of
# them at the end. The others come as they were collected.
LONGEST = (
    *("test_conformance", "test_engine", "test_baselines", "test_against_oracles", "test_kill"),
    *("test_examples", "test_sklearn_adapter", "test_peers", "test_decoupled", "test_prequential"),
    *("test_docs", "test_golden", "test_service", "test_online", "test_reproduce", "test_table"),
    *("test_learners", "test_regret", "test_delayed", "test_tuning", "test_river_adapter"),
    *("test_streaming_metric", "test_learn", "test_story", "test_stop_and_frisk", "test_browser"),
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


def pytest_configure(config):
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # by the number of tests, whatever they take
    cache = Path(config.rootpath) / ".pytest_cache" / "fairsaoml"
    # In the environment too, so that commands started by tests find the same programs.
    os.environ.setdefault("FAIRSAOML_CACHE", str(cache / "programs"))
    # Tiny programs run for milliseconds and compile for seconds: half of that can be saved.
    # Where the optimiser itself matters, `tiny.optimised` brings it back.
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    jax.config.update("jax_disable_most_optimizations", True)
    # XLA's older emitters, on one thread, need less than half of what is left. A version that does
    # not know the flags would end the process: only the one that we install is asked.
    if f"jaxlib=={version('jaxlib')}" in (config.rootpath / "constraints.txt").read_text().split():
        flags = f"--{tiny.EMITTERS}=false --xla_cpu_parallel_codegen_split_count=1"
        os.environ.setdefault("XLA_FLAGS", flags)
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    use_cache()
    sharing.share_programs()
    one_thread()  # two workers' BLAS threads would wait for each other
    # Two workers may meet at one cache entry; the loser compiles for itself.
    config.addinivalue_line("filterwarnings", "ignore:Error (read|writ)ing persistent compil")
    # Tracing makes millions of small objects, nearly all of them for good: to look through them
    # again and again takes a tenth of the time.
    gc.set_threshold(200_000, 50, 1_000)
    set_hypothesis_home_dir(cache / "hypothesis")
    hypothesis.settings.register_profile(
        "fixed", derandomize=True, database=None, deadline=None, max_examples=50
    )
    hypothesis.settings.load_profile("fixed")


@pytest.fixture(scope="session", params=tiny.LEARNERS)
def learner(request):
    """Each learner's name in turn."""
    return request.param


@pytest.fixture(scope="session")
def finished(learner, tmp_path_factory):
    """The folder of a whole tiny run with predictions; look, do not touch."""
    folder = tmp_path_factory.mktemp("finished") / learner
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(tiny.spec(learner), folder, save_predictions=True)
    return folder


class Said(NamedTuple):
    """How a command ended, and what it said where."""

    code: int
    out: str
    err: str


@pytest.fixture
def command(capsys, monkeypatch):
    """The command `fairsaoml` in this process: command("run", "synthetic") -> Said."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["fairsaoml", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Said(ended.value.code or 0, said.out, said.err)

    return call
