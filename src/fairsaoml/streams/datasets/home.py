"""Where data sets live on this machine, and how a file enters that place: whole or not at all."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import platformdirs

from fairsaoml.core.errors import DataError
from fairsaoml.files import replacing

__all__ = ["HOME_VARIABLE", "KeptFiles", "NotHere", "data_home", "keep_table", "kept_table"]

HOME_VARIABLE = "FAIRSAOML_DATA_HOME"


def data_home(home: str | Path | None = None) -> Path:
    """The folder of data sets: as given, else `FAIRSAOML_DATA_HOME`, else in the user's cache.

    Only names it; nothing is created before there is something to keep.

    >>> data_home("/srv/data").as_posix()
    '/srv/data'
    """
    if home is not None:
        return Path(home).expanduser()
    if chosen := os.environ.get(HOME_VARIABLE):
        return Path(chosen).expanduser()
    return platformdirs.user_cache_path("fairsaoml", appauthor=False, opinion=False)


def home_setting(home: str | Path | None) -> dict[str, str]:
    """What a stream's settings must say to find its data again: a home that was given."""
    return {} if home is None else {"home": str(Path(home).expanduser().absolute())}


class NotHere(DataError):
    """A data set that is not in the data home: it says the one command that gets it.

    >>> NotHere.of("MovieLens 100K", Path("data"), "fairsaoml data get movielens").args[0]
    "MovieLens 100K is not in the data home 'data'; get it with: fairsaoml data get movielens"
    """

    @classmethod
    def of(cls, what: str, home: Path, command: str) -> Self:
        """The error in words; its text is all that it holds, so that it can cross processes."""
        return cls(f"{what} is not in the data home {str(home)!r}; get it with: {command}")


class KeptFiles(NamedTuple):
    """What is now in the data home, and what a person should know of it."""

    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()

    @staticmethod
    def joined(several: "Sequence[KeptFiles]") -> "KeptFiles":
        """All files, and each note once."""
        files = tuple(path for kept in several for path in kept.files)
        notes = dict.fromkeys(note for kept in several for note in kept.notes)
        return KeptFiles(files, tuple(notes))


def make_folder(folder: Path) -> None:
    """A folder in the data home, made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"cannot write to {str(folder)!r} ({error.strerror}); "
            f"set {HOME_VARIABLE} to a folder of yours"
        ) from error


def keep_table(table: Any, path: Path) -> None:
    """Write an Arrow table as Parquet, whole or not at all, every page with its checksum."""
    import pyarrow.parquet as pq

    make_folder(path.parent)
    with replacing(path, shared=True) as temporary:
        pq.write_table(table, temporary, write_page_checksum=True)


def kept_table(path: Path, command: str) -> Any:
    """What `keep_table` wrote; if it was damaged since, the error says how to mend it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is damaged ({error}); get it again with: {command}") from error
