"""One thread for XLA, and memory that stays: how a process that runs learners uses the machine."""

import ctypes
import os
from contextlib import suppress
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController, threadpool_limits

__all__ = ["give_back", "one_blas_thread", "one_thread"]

MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1  # glibc's numbers of its settings
LARGEST_KEPT, MOST_KEPT = 32 << 20, 256 << 20  # bytes: of one piece, the most that glibc allows


def one_thread() -> None:
    """Let XLA compute on one thread, if it was not told otherwise.

    Called by runs, wherever they run, and never at import: it is read when JAX first
    computes. Split between two threads a large round takes half as long again
    (docs/performance.md), and workers that share a machine would be in each other's way.
    """
    if "NPROC" not in os.environ:
        os.environ.setdefault("PJRT_NPROC", "1")
    # XLA solves linear systems by SciPy's BLAS, whose threads would wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    threadpool_limits(1, "blas")
    _keep_memory()


def _keep_memory() -> None:
    """Let what a round frees stay with the process, for the next one.

    glibc gives large pieces back to the system and gets them again page by page: a quarter of the
    time of a large round. Another C library has no such settings, and is left alone.
    """
    with suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(MMAP_THRESHOLD, LARGEST_KEPT)
        mallopt(TRIM_THRESHOLD, MOST_KEPT)


def give_back() -> None:
    """Give the memory that is free back to the system: after a compilation that is most of it."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def one_blas_thread() -> Any:
    """A context in which BLAS computes on one thread, for code that runs in several threads itself.

    XLA factorises small matrices by SciPy's BLAS; on a busy machine its threads wait for each
    other, and a round takes up to a hundred times as long.
    """
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  the BLAS that XLA uses: it must be loaded to be held

    return ThreadpoolController()
