"""Issued decisions, their labels, tasks and rounds in one SQLite file; what is committed stays.

One process writes (`files` on disk: the store, its write-ahead log and its index). A commit is
flushed to the disk before it counts, so a kill at any moment loses nothing that was committed, and
what was not committed never was. Without a path the store is in memory.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from fairsaoml.core.errors import DataError, RunError

SCHEMA = 1
SYNCHRONOUS = "FULL"  # a commit is on the disk before it counts, even if the power fails
LOG_PAGES = (
    8192  # of 4 KB: the log is moved into the file when it is larger, not in every large call
)
CACHE_KILOBYTES = 16_384  # a call of 10,000 labels fits
APPLICATION = 0x66616972  # "fair": tells our files from other SQLite files
# What a row is: open (waiting for its label, or labelled and waiting for its task to close), taken
# by the task that closed with it, or never to be labelled.
WAITING, LABELLED, TAKEN, NEVER = range(4)
ROWS_AT_ONCE = 64  # in one statement; then the powers of two below, so that they are few
TABLES = Path(__file__).with_name("store.sql")


class FullDisk(RunError):
    """Nothing more can be written; nothing that was committed is lost."""


class Store:
    """One SQLite file, opened by its only writer.

    Args:
        path: created, with its folder, if there is none; None is a store in memory.

    Raises:
        RunError: the file is damaged, of another version, or no store.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        if path is not None:
            if path.is_dir():
                raise RunError(f"expected a file at {path}, found a folder; name a file in it")
            path.parent.mkdir(parents=True, exist_ok=True)
            _require_store(path)
        self._connection = _connect(path)
        self.counts: Counter[str] = Counter()
        try:
            with _in_words(path):
                self._prepare()
                self.counts.update(dict(self.query("SELECT name, value FROM counts")))
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """Make the tables, or check those that are there."""
        if self.path is not None:
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute(f"PRAGMA synchronous={SYNCHRONOUS}")
            self._connection.execute("PRAGMA secure_delete=ON")  # what is erased is overwritten
            self._connection.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")
            self._connection.execute(f"PRAGMA cache_size=-{CACHE_KILOBYTES}")
        version = self.value("PRAGMA user_version")
        if version == 0 and not self.query("SELECT name FROM sqlite_master LIMIT 1"):
            with self.writing():
                for statement in TABLES.read_text().split(";\n"):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA application_id={APPLICATION}")
                self._connection.execute(f"PRAGMA user_version={SCHEMA}")
            return
        application = self.value("PRAGMA application_id")
        if application != APPLICATION or version != SCHEMA:
            raise RunError(
                f"expected a store of schema {SCHEMA} at {self.path}, got "
                f"{'schema ' + str(version) if application == APPLICATION else 'another database'}"
                "; use the version of fairsaoml that wrote it, or give another path"
            )
        found = self.value("PRAGMA quick_check(1)")
        if found != "ok":
            raise _damaged(self.path, found)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Commit all that the block writes, counts included, or nothing of it.

        Raises:
            FullDisk: the disk has no room for it.
        """
        before = self.counts.copy()
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            with _in_words(self.path):
                yield
                changed = [(n, v) for n, v in self.counts.items() if v != before[n]]
                self.insert("INSERT OR REPLACE INTO counts", changed)
                self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self.counts = before
            raise

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple]:
        """Return all rows of a query."""
        return self._connection.execute(sql, values).fetchall()

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Return what a query finds first, None where it finds nothing."""
        found = self.query(sql, values)
        return found[0][0] if found else None

    def write(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement inside `writing`; return how many rows it changed."""
        return self._connection.execute(sql, values).rowcount

    def write_many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement inside `writing` once for each of `values`."""
        self._connection.executemany(sql, values)

    def insert(self, into: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows inside `writing`, many by one statement.

        SQLite lets other threads run during a statement, and to get its turn back is what costs.
        """
        begin, size = 0, ROWS_AT_ONCE
        while begin < len(rows):
            while size > len(rows) - begin:
                size //= 2
            part = rows[begin : begin + size]
            marks = ",".join([f"({','.join('?' * len(part[0]))})"] * size)
            self._connection.execute(f"{into} VALUES {marks}", [*chain.from_iterable(part)])
            begin += size

    def by_id(self, columns: str, ids: Sequence[str]) -> dict[str, tuple]:
        """Return the columns of the newest row of each id that has one."""
        among = "id IN (SELECT value FROM json_each(?))"
        query = f"SELECT id, {columns} FROM rows WHERE {among} ORDER BY number"
        return {row[0]: row[1:] for row in self.query(query, [json.dumps(ids)])}

    def fact(self, name: str) -> Any:
        """Return a fact as plain data, None where there is none."""
        found = self.value("SELECT value FROM facts WHERE name = ?", [name])
        return None if found is None else json.loads(found)

    def set_fact(self, name: str, value: Any) -> None:
        """Write a fact, inside `writing`."""
        self.write("INSERT OR REPLACE INTO facts VALUES (?, ?)", [name, to_text(value)])

    def reader(self) -> sqlite3.Connection:
        """Return another connection, which sees what is committed and writes nothing."""
        connection = _connect(self.path)
        connection.execute("PRAGMA query_only=ON")
        return connection

    def size(self) -> int:
        """Return the bytes of the file and of its write-ahead log."""
        assert self.path is not None
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def tidy(self) -> None:
        """Move the write-ahead log into the file, so that what was erased is nowhere."""
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file; it is all that is needed to continue."""
        self._connection.close()


def to_text(value: Any) -> str:
    """Return plain data as JSON, exact to the last digit.

    Raises:
        DataError: it holds something that JSON cannot.
    """
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as problem:
        raise DataError(
            f"expected numbers, words and truth values, got what no store can hold ({problem}); "
            "convert it first"
        ) from None


def _connect(path: Path | None) -> sqlite3.Connection:
    return sqlite3.connect(
        ":memory:" if path is None else path, isolation_level=None, check_same_thread=False
    )


def _require_store(path: Path) -> None:
    """Raise RunError where a file is there that SQLite did not write."""
    if not path.exists():
        return
    with path.open("rb") as file:
        begin = file.read(16)
    if begin and begin != b"SQLite format 3\0":
        what = "a journal of an older version" if begin.startswith(b'{"event"') else "another file"
        raise RunError(
            f"expected a store at {path}, got {what}; give another path, or continue it with the "
            "version of fairsaoml that wrote it"
        )


@contextmanager
def _in_words(path: Path | None) -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except sqlite3.OperationalError as problem:
        if problem.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise
        raise FullDisk(
            f"expected to write {path}, got: {problem}; make room on the disk, then send it again: "
            "nothing of this call was taken, nothing before it is lost"
        ) from None
    except sqlite3.DatabaseError as problem:
        if problem.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
        raise _damaged(path, problem) from None


def _damaged(path: Path | None, problem: object) -> RunError:
    return RunError(
        f"{path} is damaged ({problem}); continue from an intact copy, or begin another"
    )
