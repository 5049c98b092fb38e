"""Issued decisions, their labels, tasks and rounds in one SQLite file; what is committed stays.

One process writes (`files` on disk: the store, its write-ahead log and its index). A commit is
flushed to the disk before it counts, so a kill at any moment loses nothing that was committed, and
what was not committed never was. Without a path the store is in memory.
"""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from fairsaoml.core.errors import DataError, RunError

SCHEMA = 1
SYNCHRONOUS = "FULL"  # a commit is on the disk before it counts, even if the power fails
# Pages of 4 KB: the log is moved into the file when it is larger, not in every large call.
LOG_PAGES = 8192
CACHE_KILOBYTES = 16_384  # a call of 10,000 labels fits
APPLICATION = 0x66616972  # "fair": tells our files from other SQLite files
# What a row is: open (waiting for its label, or labelled and waiting for its task to close), taken
# by the task that closed with it, or never to be labelled.
WAITING, LABELLED, TAKEN, NEVER = range(4)
ROWS_AT_ONCE = 64  # in one statement; then the powers of two below, so that they are few
TABLES = Path(__file__).with_name("store.sql")


class FullDisk(RunError):
    """Nothing more can be written; nothing that was committed is lost."""


class Store(sqlite3.Connection):
    """One SQLite file, opened by its only writer.

    Args:
        path: created, with its folder, if there is none; None is a store in memory.

    Raises:
        RunError: the file is damaged, of another version, or no store.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.counts: Counter[str] = Counter()
        if path is not None:
            if path.is_dir():
                raise RunError(f"expected a file at {path}, found a folder; name a file in it")
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.stat().st_size == 1:  # SQLite takes it for an empty one
                raise self._foreign()
        super().__init__(path or ":memory:", isolation_level=None, check_same_thread=False)
        try:
            with self._in_words():
                self._prepare()
                self.counts.update(dict(self.query("SELECT name, value FROM counts")))
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """Make the tables, or check those that are there."""
        for setting in (
            "journal_mode = WAL",
            f"synchronous = {SYNCHRONOUS}",
            "secure_delete = ON",  # what is erased is overwritten
            f"wal_autocheckpoint = {LOG_PAGES}",
            f"cache_size = -{CACHE_KILOBYTES}",
        ):
            self.execute(f"PRAGMA {setting}")
        version = self.value("PRAGMA user_version")
        if version == 0 and not self.query("SELECT name FROM sqlite_master LIMIT 1"):
            self.executescript(TABLES.read_text())
            return
        application = self.value("PRAGMA application_id")
        if (application, version) != (APPLICATION, SCHEMA):
            raise RunError(
                f"expected a store of schema {SCHEMA} at {self.path}, got "
                f"{f'schema {version}' if application == APPLICATION else 'another database'}"
                "; use the version of fairsaoml that wrote it, or give another path"
            )
        state = self.value("PRAGMA quick_check(1)")
        if state != "ok":
            raise self._damaged(state)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Commit all that the block writes, counts included, or nothing of it.

        Raises:
            FullDisk: the disk has no room for it.
        """
        before = self.counts.copy()
        self.execute("BEGIN IMMEDIATE")
        try:
            with self._in_words():
                yield
                changed = [(n, v) for n, v in self.counts.items() if v != before[n]]
                self.insert("INSERT OR REPLACE INTO counts", changed)
                self.execute("COMMIT")
        except BaseException:
            self.rollback()
            self.counts = before
            raise

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple]:
        """Return all rows of a query."""
        return self.execute(sql, values).fetchall()

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Return what a query finds first, None where it finds nothing."""
        rows = self.query(sql, values)
        return rows[0][0] if rows else None

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
            self.execute(f"{into} VALUES {marks}", [*chain.from_iterable(part)])
            begin += size

    def by_id(self, columns: str, ids: Sequence[str]) -> dict[str, tuple]:
        """Return the columns of the newest row of each id that has one."""
        # CROSS: the index is asked for each id as it comes, which is the quickest way.
        asked = "json_each(?) AS asked CROSS JOIN rows ON rows.id = asked.value"
        query = f"SELECT rows.id, {columns} FROM {asked} ORDER BY number"
        return {row[0]: row[1:] for row in self.query(query, [json.dumps(ids)])}

    def change(self, change: str, values: Mapping[int, Any]) -> None:
        """Change rows by their numbers inside `writing`, those of one value by one statement."""
        numbers = defaultdict[Any, list[int]](list)
        for number, value in values.items():
            numbers[value].append(number)
        query = f"UPDATE rows SET {change} WHERE number IN (SELECT value FROM json_each(?))"
        self.executemany(query, [(value, json.dumps(ns)) for value, ns in numbers.items()])

    def fact(self, name: str) -> Any:
        """Return a fact as plain data, None where there is none."""
        return json.loads(self.value("SELECT value FROM facts WHERE name = ?", [name]) or "null")

    def set_fact(self, name: str, value: Any) -> None:
        """Write a fact, inside `writing`."""
        self.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", [name, to_text(value)])

    def size(self) -> int:
        """Return the bytes of the file and of its write-ahead log."""
        files = (Path(f"{self.path}{ending}") for ending in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """Turn SQLite's errors into ours."""
        try:
            yield
        except sqlite3.DatabaseError as problem:
            code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
                raise FullDisk(
                    f"expected to write {self.path}, got: {problem}; make room on the disk, then "
                    "send it again: nothing of this call was taken, nothing before it is lost"
                ) from None
            if code == sqlite3.SQLITE_NOTADB:
                raise self._foreign() from None
            if code == sqlite3.SQLITE_CORRUPT:
                raise self._damaged(problem) from None
            raise

    def _foreign(self) -> RunError:
        return RunError(
            f"expected a store at {self.path}, got another file or a journal of an older version; "
            "give another path, or use the version of fairsaoml that wrote it"
        )

    def _damaged(self, problem: object) -> RunError:
        words = "continue from an intact copy, or begin another"
        return RunError(f"{self.path} is damaged ({problem}); {words}")


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


def some(values: Sequence[Any]) -> str:
    """Return a few values for a message."""
    return ", ".join(map(repr, values[:5])) + (", ..." if len(values) > 5 else "")
