"""Nothing heavy is loaded before it is needed."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import fairsaoml

HEAVY = ("jax", "numpy", "pyarrow", "sklearn", "scipy", "matplotlib", "pandas", "safetensors")
HELP = "import sys; sys.argv = ['fairsaoml', '--help']; from fairsaoml.cli import main; main()"


def loaded_after(program):
    """Which heavy modules a fresh interpreter holds after a program that may exit."""
    code = (
        f"import sys\ntry:\n    exec({program!r})\nexcept SystemExit as end:\n"
        f"    assert not end.code, end.code\n"
        f"print('loaded:', *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout, done.stdout.rpartition("loaded:")[2].split()


def test_help_loads_nothing_heavy():
    shown, loaded = loaded_after(HELP)
    assert "Usage" in shown
    assert loaded == []


@pytest.mark.parametrize("program", ["import fairsaoml", "from fairsaoml import ConfigError"])
def test_the_package_loads_nothing_heavy(program):
    assert loaded_after(program)[1] == []


def test_every_name_in_the_table_of_contents_is_there():
    assert dir(fairsaoml) == fairsaoml.__all__
    for name in fairsaoml.__all__:
        assert getattr(fairsaoml, name).__name__ == name
    with pytest.raises(AttributeError, match="No fairsaoml attribute fairness_for_free"):
        _ = fairsaoml.fairness_for_free


def test_the_version_is_the_installed_ones():
    assert fairsaoml.__version__ == version("fairsaoml")
