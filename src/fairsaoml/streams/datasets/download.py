"""One file over HTTPS, by pooch: whole and, where its checksum is known, the right one; or none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from fairsaoml.core.errors import DataError
from fairsaoml.streams.datasets.home import HOME_VARIABLE, make_folder

__all__ = ["OutOfReach", "Progress", "download", "require_safe"]

Progress = Callable[[int, int | None], None]  # bytes that are here, bytes in all if known

CHUNK = 1 << 16
LOOPBACK = ("127.0.0.1", "::1", "localhost")


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
    downloader = pooch.HTTPDownloader(
        progressbar=_Bar(progress),
        chunk_size=CHUNK,
        timeout=timeout,
        headers={"User-Agent": "fairsaoml", "Accept-Encoding": "identity"},
        hooks={"response": _check_redirect},
    )
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
