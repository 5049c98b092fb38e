"""Rounds kept on disk as they were traced, so that a new process begins at once.

JAX keeps what it compiled, and finds it again by the program: a round has to be traced before it is
found, which takes longer than all the rest. A kept trace belongs to our code, the version of JAX,
the learner's settings and the shapes of its rows, and is never used for others. A learner of
another package has none: its code is not ours to look through.
"""

import gc
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import flatbuffers  # noqa: F401 - what jax.export writes with, and does not require itself
import jax
from jax import export

import fairsaoml
from fairsaoml.evaluate.compilation import cache_folder, jit
from fairsaoml.evaluate.threads import give_back
from fairsaoml.files import make_folder, write_bytes

PARTS = ("core", "learners", "evaluate")  # of the package, that a round is made of
CONFIG = ("jax_enable_x64", "jax_numpy_dtype_promotion", "jax_default_matmul_precision")
DIGEST = 32  # bytes


class TracedOnce:
    """A round's function, compiled for each shape of its arguments."""

    def __init__(
        self,
        function: Callable[..., Any],
        made_of: str | None,
        returned: tuple[type, ...],
        donate: tuple[int, ...] = (),
    ) -> None:
        """Compile nothing yet.

        Args:
            function: What is compiled.
            made_of: All that it depends on apart from our code; None: nothing is kept on disk.
            returned: The NamedTuples that it returns beside those that it is given.
            donate: The places of arguments whose memory it may use.
        """
        self.function, self.made_of = function, made_of
        self.returned, self.donate = returned, donate
        self.programs: dict[Any, Any] = {}  # by shapes

    def __call__(self, *arguments: Any) -> Any:
        leaves, tree = jax.tree.flatten(arguments)
        shapes = (tree, *((leaf.shape, leaf.dtype) for leaf in leaves))
        if shapes not in self.programs:
            self.programs[shapes] = self.lower(*arguments).compile()
            give_back()
        return self.programs[shapes](*arguments)

    def clear_cache(self) -> None:
        """Forget the programs of this process."""
        self.programs.clear()

    def shapes(self, *arguments: Any) -> Any:
        """What it would return, as shapes; nothing is compiled or computed."""
        return jax.eval_shape(self._traced(arguments), *arguments)

    def lower(self, *arguments: Any) -> Any:
        """The program for such arguments, before it is compiled."""
        was_on = gc.isenabled()
        gc.disable()  # a fifth of the time that tracing takes went into a search for garbage
        try:
            return jit(self._traced(arguments), donate_argnums=self.donate).lower(*arguments)
        finally:
            if was_on:
                gc.enable()

    def _traced(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        """The function as it was traced for such arguments, now or in an earlier process."""
        if self.made_of is None:
            return self.function
        for kind in {*self.returned, *_named_tuples(jax.tree.structure(arguments))}:
            with suppress(ValueError):  # known already
                name = f"{kind.__module__}.{kind.__qualname__}"
                export.register_namedtuple_serialization(kind, serialized_name=name)
        path = _path(self.made_of, arguments)
        kept = path.read_bytes() if path.exists() else b""
        content = kept[DIGEST:]
        if not content or hashlib.sha256(content).digest() != kept[:DIGEST]:
            shapes = jax.tree.map(lambda one: jax.ShapeDtypeStruct(one.shape, one.dtype), arguments)
            # JAX keeps what it traced for as long as the function lives: this one does not.
            traced = export.export(jax.jit(lambda *arguments: self.function(*arguments)))(*shapes)
            content = bytes(traced.serialize())
            with suppress(OSError):  # a full or read-only disk costs time, not the run
                make_folder(path.parent)
                write_bytes(path, hashlib.sha256(content).digest() + content)
        return export.deserialize(bytearray(content)).call


def _path(made_of: str, arguments: tuple[Any, ...]) -> Path:
    leaves, tree = jax.tree.flatten(arguments)
    key = {
        "code": _code(),
        "jax": [jax.__version__, jax.default_backend()],
        "config": {name: str(jax.config.values.get(name)) for name in CONFIG},
        "made_of": made_of,
        "arguments": [str(tree), *(f"{leaf.shape} {leaf.dtype}" for leaf in leaves)],
    }
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    return cache_folder() / "traced" / name


@cache
def _code() -> str:
    """A checksum of the code that rounds are made of."""
    package = Path(fairsaoml.__file__).parent
    files = sorted(file for part in PARTS for file in (package / part).rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _named_tuples(tree: Any) -> Iterator[type]:
    """The types of the named tuples in a structure."""
    if (node := tree.node_data()) and hasattr(node[0], "_fields"):
        yield node[0]
    for part in tree.children():
        yield from _named_tuples(part)
