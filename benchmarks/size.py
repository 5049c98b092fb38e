"""What installing the library brings: megabytes of each distribution it needs, its extras apart."""

from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement

from benchmarks.measure import Measured, at_most

__all__ = ["measure"]

MEGA = 1_000_000
BEFORE = 983.0  # megabytes, when this was first counted
NAMED = 8  # the largest are named


def measure(full: bool) -> list[Measured]:
    """Megabytes in all, and of the largest."""
    sizes = {one.name: megabytes(one) for one in needed("fairsaoml").values()}
    largest = sorted(sizes, key=lambda name: -sizes[name])[: None if full else NAMED]
    return [
        Measured(
            "megabytes of the library with what it needs",
            sum(sizes.values()),
            at_most(BEFORE),
            "in megabytes; " + ", ".join(f"{name} {sizes[name]:.0f}" for name in largest),
        )
    ]


def needed(name: str, so_far: dict[str, Distribution] | None = None) -> dict[str, Distribution]:
    """A distribution and all it requires, by name."""
    so_far = {} if so_far is None else so_far
    try:
        one = distribution(name)
    except PackageNotFoundError:
        return so_far
    if one.name not in so_far:
        so_far[one.name] = one
        for line in one.requires or ():
            wanted = Requirement(line)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                needed(wanted.name, so_far)
    return so_far


def megabytes(one: Distribution) -> float:
    """Of a distribution's own files."""
    paths = (file.locate() for file in one.files or ())
    return sum(path.stat().st_size for path in paths if path.is_file()) / MEGA
