"""Where data sets live on this machine, and how a file gets there: whole or not at all.

Files come over HTTPS, by pooch, and where their checksum is known, only the right ones.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urljoin, urlsplit

import platformdirs

from fairsaoml.core.errors import DataError
from fairsaoml.files import replacing

HOME_VARIABLE = "FAIRSAOML_DATA_HOME"

Progress = Callable[[int, int | None], None]  # bytes that are here, bytes in all if known

CHUNK = 1 << 16
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def data_home(home: str | Path | None = None) -> Path:
    """The folder of data sets: as given, else `FAIRSAOML_DATA_HOME`, else in the user's cache.

    Only names it; nothing is created before there is something to keep.

    >>> data_home("/srv/data").as_posix()
    '/srv/data'
    """
    cache = platformdirs.user_cache_path("fairsaoml", appauthor=False, opinion=False)
    chosen = os.environ.get(HOME_VARIABLE) or cache
    return Path(chosen if home is None else home).expanduser()


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


class OutOfReach(DataError):
    """The server cannot be reached, or does not give the file."""


def download(
    url: str,
    target: Path,
    *,
    sha256: str | None = None,
    timeout: float = 20.0,
    progress: Progress = lambda done, total: None,
) -> Path:
    """Bring `url` to `target`, which is written aside and named so only when it is whole.

    Args:
        url: An https address.
        target: The file to write; an older one is replaced.
        sha256: The file's checksum, where it is known.
        timeout: Seconds to wait for the server.
        progress: Told how many bytes have come, and of how many.

    Raises:
        OutOfReach: The server does not answer, does not have the file, or breaks off.
        DataError: The address or one it leads to is not https, the checksum is wrong, or the
            file cannot be written.
    """
    import pooch
    import requests

    require_safe(url)
    make_folder(target.parent)
    pooch.get_logger().setLevel("WARNING")
    headers = {"User-Agent": "fairsaoml", "Accept-Encoding": "identity"}
    request = {"timeout": timeout, "headers": headers, "hooks": {"response": _check_redirect}}
    downloader = pooch.HTTPDownloader(_Bar(progress), CHUNK, **request)
    target.unlink(missing_ok=True)  # or it would be taken for the file asked for
    known = None if sha256 is None else f"sha256:{sha256}"
    try:
        pooch.retrieve(url, known, target.name, target.parent, downloader=downloader)
    except requests.HTTPError as error:
        raise OutOfReach(f"{url}: the server answers {error}") from error
    except requests.RequestException as error:
        raise OutOfReach(f"{url} cannot be reached, or broke off: {error}") from error
    except ValueError as error:
        raise DataError(f"{url}: wrong checksum, nothing was kept: {error}") from error
    except OSError as error:
        raise DataError(
            f"cannot write {str(target)!r} ({error.strerror}); make room there, or set "
            f"{HOME_VARIABLE} to another folder"
        ) from error
    return target


def require_safe(url: str) -> None:
    """HTTPS only; plain HTTP no further than this machine.

    >>> require_safe("https://example.org/a.zip"), require_safe("http://127.0.0.1:8000/a.zip")
    (None, None)
    >>> require_safe("http://example.org/a.zip")
    Traceback (most recent call last):
    fairsaoml.core.errors.DataError: expected an https address, got http://example.org/a.zip
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise DataError(f"expected an https address, got {url}")


def _check_redirect(answer: Any, *_: Any, **__: Any) -> None:
    """A redirect must stay with the site that was asked, and with https."""
    if answer.is_redirect:
        target = urljoin(answer.url, answer.headers["location"])
        require_safe(target)
        asked, sent = (_site(url) for url in (answer.url, target))
        if asked != sent:
            raise DataError(
                f"expected {answer.url} to stay at {asked}, got a redirect to {sent}; get the "
                "file by hand if you trust that address"
            )


def _site(url: str) -> str:
    """The last two parts of a host's name; an address of numbers as it is.

    >>> _site("https://files.example.org/a.zip"), _site("http://127.0.0.1:8000/a")
    ('example.org', '127.0.0.1')
    """
    host = urlsplit(url).hostname or ""
    return host if host.replace(".", "").isdigit() else ".".join(host.split(".")[-2:])


class _Bar:
    """A progress bar as pooch expects one, which calls a function."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.done, self.total = progress, 0, 0

    def update(self, size: int) -> None:
        self.done = min(self.done + size, self.total or self.done + size)
        self.progress(self.done, self.total or None)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        pass
