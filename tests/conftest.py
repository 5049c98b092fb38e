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

import tiny
from fairsaoml.cli import main
from fairsaoml.evaluate.compilation import use_cache
from fairsaoml.evaluate.threads import one_thread
from fairsaoml.runs.runner import run


def pytest_configure(config):
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
