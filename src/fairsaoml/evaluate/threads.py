"""One thread for XLA, and memory that stays: how a process that runs learners uses the machine."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

from threadpoolctl import LibController, ThreadpoolController, threadpool_limits

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


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS computes on one thread, for code that runs in several threads itself.

    XLA factorises small matrices by SciPy's BLAS; on a busy machine its threads wait for each
    other, and a round takes up to a hundred times as long.
    """
    # threadpoolctl's own context takes as long as five solves.
    several = [(blas, count) for blas in _blas() if (count := blas.get_num_threads()) != 1]
    for blas, _ in several:
        blas.set_num_threads(1)
    try:
        yield
    finally:
        for blas, count in several:
            blas.set_num_threads(count)


@cache
def _blas() -> list[LibController]:
    import scipy.linalg  # noqa: F401  the BLAS that XLA uses: it must be loaded to be held

    _keep_memory()  # once, where a learner first computes
    return ThreadpoolController().select(user_api="blas").lib_controllers
