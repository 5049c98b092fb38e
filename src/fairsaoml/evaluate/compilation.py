"""Compiled programs are kept on disk, so that only the first run of a kind has to wait."""

import os
from pathlib import Path

__all__ = ["cache_folder", "use_cache"]


def cache_folder() -> Path:
    """The user's cache folder for this version of the compiler (`FAIRSAOML_CACHE` moves it)."""
    import jaxlib

    home = os.environ.get("FAIRSAOML_CACHE")
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairsaoml"
    return (Path(home) if home else user) / f"jax-{jaxlib.__version__}"


def use_cache() -> None:
    """Keep every compiled program, however small. Called by runs, never at import."""
    import jax

    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # a read-only home costs time, not the run
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
