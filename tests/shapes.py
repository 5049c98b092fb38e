"""Enforce the shapes in jaxtyping annotations: a call that breaks one is an error in every test."""

from collections.abc import Callable, Iterator
from pathlib import Path

from beartype import beartype
from jaxtyping import install_import_hook

SOURCE = Path(__file__).parent.parent / "src"


def annotated() -> Iterator[str]:
    """The modules that write shapes down."""
    for path in sorted((SOURCE / "fairsaoml").rglob("*.py")):
        if "from jaxtyping import" in path.read_text():
            yield ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def enforce() -> None:
    """Check every call of these modules' functions from now on, arguments and results."""
    install_import_hook(list(annotated()), "shapes.checked")


def checked(function: Callable) -> Callable:
    """The function with its shapes checked; one without shapes as it is.

    Other types are left to mypy: settings take a list where they keep a tuple.
    """
    shaped = any("jaxtyping" in repr(hint) for hint in function.__annotations__.values())
    return beartype(function) if shaped else function
