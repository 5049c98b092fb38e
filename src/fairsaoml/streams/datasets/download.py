"""One file over HTTPS, resumable: what has come waits in a `.part` file until it is whole.

Beside it lies `.part.json`, saying which version of which address the part is of, so that two
versions of a file are never glued together. Nothing is called by its name before its length and,
where one is known, its checksum agree.
"""

import hashlib
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fairsaoml.core.errors import DataError
from fairsaoml.streams.datasets.home import make_folder

__all__ = ["OutOfReach", "download", "require_checksum", "require_safe"]

Progress = Callable[[int, int | None], None]  # bytes that are here, bytes in all if known

CHUNK = 1 << 16
ATTEMPTS = 3  # a connection that breaks is taken up again where it broke, this often in all
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
    """Bring `url` to `target`, going on where an earlier attempt stopped."""
    require_safe(url)
    make_folder(target.parent)
    part = target.with_name(f"{target.name}.part")
    for _ in range(ATTEMPTS):
        total = _receive(url, part, trusted=sha256 is not None, timeout=timeout, progress=progress)
        if total is None or part.stat().st_size == total:
            break
    else:
        raise OutOfReach(
            f"{url}: expected {total:,} bytes, got {part.stat().st_size:,} before the connection "
            "broke; run the same command again, it goes on from there"
        )
    if sha256 is not None:
        try:
            require_checksum(part, sha256, url)
        except DataError:
            _forget(part)  # resuming from wrong bytes would only give wrong bytes again
            raise
    part.replace(target)
    _version_file(part).unlink(missing_ok=True)
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


def require_checksum(path: Path, sha256: str, origin: str) -> None:
    """Refuse a file that is not, byte for byte, the published one."""
    with path.open("rb") as stream:
        got = hashlib.file_digest(stream, "sha256").hexdigest()
    if got != sha256:
        raise DataError(
            f"{origin}: wrong checksum, expected sha256 {sha256}, got {got}; nothing was kept: "
            "the file was damaged on its way or is another one"
        )


class _Version(NamedTuple):
    """What a part is a part of: an address, and the server's mark of this state of the file."""

    url: str
    mark: str  # ETag or Last-Modified, "" if the server gives neither


def _receive(
    url: str, part: Path, *, trusted: bool, timeout: float, progress: Progress
) -> int | None:
    """Append what is still missing of `url` to `part`; the length of the whole, if known."""
    version = _read_version(part)
    # Without the server's mark, only a checksum can tell that old and new bytes belong together.
    resumable = version is not None and version.url == url and (version.mark or trusted)
    start = part.stat().st_size if resumable and part.exists() else 0
    headers = {"User-Agent": "fairsaoml"}
    if start:
        headers["Range"] = f"bytes={start}-"
        if version is not None and version.mark:
            headers["If-Range"] = version.mark
    try:
        with _open(url, headers, timeout) as answer:
            total = _length(answer, start)
            if answer.status != http.HTTPStatus.PARTIAL_CONTENT:
                start = 0  # the server sends the whole file: it has changed, or takes no ranges
                _forget(part)
            _write_version(part, _Version(url, _mark(answer.headers)))
            _copy(answer, part, start, total, progress)
            return total
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            if error.headers.get("Content-Range") == f"bytes */{start}":
                return start  # all of it had come before
            _forget(part)  # longer than the file: a part of something else
            return _receive(url, part, trusted=trusted, timeout=timeout, progress=progress)
        raise OutOfReach(f"{url}: the server answers {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error or type(error).__name__
        raise OutOfReach(f"{url} cannot be reached: {reason}") from error


def _copy(answer: Any, part: Path, start: int, total: int | None, progress: Progress) -> None:
    with part.open("ab") as stream:
        progress(start, total)
        while True:
            try:
                chunk = answer.read(CHUNK)
            except (OSError, http.client.HTTPException):
                if total is None:  # nobody could tell that the file is short
                    raise
                return  # what is here stays here; the caller sees that it is short
            if not chunk:
                return
            stream.write(chunk)
            progress(stream.tell(), total)


def _length(answer: Any, start: int) -> int | None:
    """Length of the whole file, from the answer to a whole or a partial request."""
    if answer.status == http.HTTPStatus.PARTIAL_CONTENT:
        span = answer.headers.get("Content-Range", "")
        total = span.rpartition("/")[2]
        if not span.startswith(f"bytes {start}-") or not total.isdigit():
            raise http.client.HTTPException(f"asked for bytes from {start}, got {span!r}")
        return int(total)
    length = answer.headers.get("Content-Length")
    return int(length) if length and length.isdigit() else None


def _mark(headers: Message) -> str:
    tag = headers.get("ETag", "")
    return headers.get("Last-Modified", "") if not tag or tag.startswith("W/") else tag


class _StaySafe(urllib.request.HTTPRedirectHandler):
    """A redirect may not lead where the first address could not."""

    def redirect_request(self, *answer: Any) -> Any:
        require_safe(answer[-1])
        return super().redirect_request(*answer)


def _open(url: str, headers: dict[str, str], timeout: float) -> Any:
    opener = urllib.request.build_opener(_StaySafe)
    return opener.open(urllib.request.Request(url, headers=headers), timeout=timeout)


def _version_file(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _read_version(part: Path) -> _Version | None:
    try:
        return _Version(**json.loads(_version_file(part).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _write_version(part: Path, version: _Version) -> None:
    _version_file(part).write_text(json.dumps(version._asdict()))


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _version_file(part).unlink(missing_ok=True)
