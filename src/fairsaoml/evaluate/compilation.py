"""Compiled programs are kept on disk, so that only the first run of a kind has to wait."""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from fairsaoml.core.errors import RunError

# Settings of XLA.
ONE_THREAD = "xla_cpu_multi_thread_eigen"  # switched off
FUSION_EMITTERS = "xla_cpu_use_fusion_emitters"  # the better kernels, which take twice as long
# How hard LLVM tries, 3 by default: with 2 a round is as fast, and compiled in a fifth less time.
EFFORT = "xla_backend_optimization_level"
LOOKED = "looked-through"  # an empty file: its time says which programs are known to be whole


def cache_folder() -> Path:
    """The user's cache folder for this version of the compiler (`FAIRSAOML_CACHE` moves it)."""
    from jaxlib.version import __version__

    home = os.environ.get("FAIRSAOML_CACHE")
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairsaoml"
    return (Path(home) if home else user) / f"jax-{__version__}"


@cache
def _started_in() -> int:
    """The process that JAX was started in by us: a fork remembers it as well."""
    return os.getpid()


def require_unforked() -> None:
    """Refuse to compute in a fork of a process that has computed: JAX's threads are not in it.

    Raises:
        RunError: this process was forked after JAX had started; it would wait for ever.
    """
    if _started_in() != os.getpid():
        raise RunError(
            "expected a process that was started, got one forked after JAX had begun to compute; "
            'use multiprocessing.get_context("spawn"), or import and fit in the child alone'
        )


def use_cache() -> None:
    """Keep every compiled program, however small. Called by runs, never at import."""
    import jax

    require_unforked()

    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _mended(folder)
    except OSError:
        return  # a read-only home costs time, not the run
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def jit(function: Callable[..., Any], **options: Any) -> Any:
    """`jax.jit` of a round: its operations are too small to be worth splitting between threads."""
    import jax

    settings = _known(**{ONE_THREAD: False, EFFORT: 2})
    return jax.jit(function, compiler_options=settings, **options)


def jit_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.jit` of what runs once: compiled in a third of the time, slower than a round may be."""
    import jax

    settings = _known(**{FUSION_EMITTERS: False, EFFORT: 0})
    compiled = jax.jit(function, compiler_options=settings)

    def call(*arguments: Any) -> Any:
        # JAX takes options for the outermost program alone.
        inside = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(arguments))
        return (function if inside else compiled)(*arguments)

    return call


@cache
def _known(**settings: bool | int) -> dict[str, bool | int]:
    """Those of the settings that this version of the compiler has."""
    import jax

    try:
        jax.jit(lambda: 0, compiler_options=settings).lower().compile()
    except jax.errors.JaxRuntimeError:
        one_by_one = [_known(**{name: settings[name]}) for name in settings if len(settings) > 1]
        return {name: value for known in one_by_one for name, value in known.items()}
    return settings


def remove_torn(folder: Path) -> list[str]:
    """Remove the programs that a kill or a full disk left half written; their names.

    JAX writes a program in place and never again: a torn one would be warned of and compiled anew
    by every run to come. Only what was written since the last look is read. One that another
    process is just writing looks torn as well: then it is not kept, and compiled once more.
    """
    from jax._src.compilation_cache import decompress_executable  # it alone knows how it is written

    looked, looking = folder / LOOKED, folder / f"{LOOKED}.{os.getpid()}"
    looking.touch()  # before the look: what is written during it belongs to the next
    since = looked.stat().st_mtime_ns if looked.exists() else 0
    torn = []
    for entry in folder.glob("*-cache"):
        if entry.stat().st_mtime_ns >= since:
            try:
                decompress_executable(entry.read_bytes())
            except Exception:  # each compressor has its own
                entry.unlink(missing_ok=True)
                torn.append(entry.name)
    looking.replace(looked)
    return torn


@cache  # a process looks once
def _mended(folder: Path) -> None:
    # Two that start together look at the same ones, a folder may be there to be read only, and a
    # JAX to come may write in another way: then what is torn stays.
    with suppress(OSError, ImportError):
        remove_torn(folder)
