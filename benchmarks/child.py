"""A Python process of its own, for what can only be seen from its start."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["answer_of"]

CHECKOUT = Path(__file__).parent.parent


def answer_of(module: str, *words: str, **environment: str) -> Any:
    """What `python -m benchmarks.MODULE WORDS...` prints, read as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *words],
        cwd=CHECKOUT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)
