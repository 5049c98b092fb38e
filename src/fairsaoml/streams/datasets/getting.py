"""Getting data sets into the data home: from where they are published, or from a file at hand.

What is kept is the parsed table, written aside and renamed, so that the data home holds whole data
sets or none. Data sets are never redistributed with this package; their licences are those of
their publishers.
"""

import os
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fairsaoml.core.errors import ConfigError, DataError, closest
from fairsaoml.streams.datasets import home as data
from fairsaoml.streams.datasets import movielens
from fairsaoml.streams.datasets import stop_and_frisk as stops
from fairsaoml.streams.datasets.home import KeptFiles
from fairsaoml.streams.datasets.nypd import ROWS, YEARS, read_stops

GROUPLENS_URL = "https://files.grouplens.org/datasets/movielens/ml-100k.zip"
GROUPLENS_SHA256 = "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229"
NYPD_FILES = "https://www.nyc.gov/assets/nypd/downloads"
NYPD_LAST_ZIP = 2014  # later years are published as CSV, unzipped
DATASETS = tomllib.loads(Path(__file__).with_name("data_sets.toml").read_text())


class Listener(NamedTuple):
    """Callbacks for what happens; by default they do nothing.

    `progress` is given a title, and returns a context of a `Progress`.
    """

    say: Callable[[str], None] = lambda words: None
    progress: Callable[[str], Any] = lambda title: nullcontext(lambda done, total: None)


def get_data(
    name: str,
    *,
    source: str | Path | None = None,
    years: str | None = None,
    home: str | Path | None = None,
    listener: Listener | None = None,
) -> KeptFiles:
    """Bring a data set into the data home, from its publisher or from `source`.

    `source` is a file, a folder, or an https address. What is already there is left as it is,
    unless a source is given.
    """
    if name not in DATASETS:
        raise ConfigError(f"unknown data set {name!r}; {closest(name, DATASETS)}")
    if years is not None and name != "stop-and-frisk":
        raise ConfigError(f"only stop-and-frisk has years to choose from, {name} has none")
    where, listener = data.data_home(home), listener or Listener()
    place = None if source is None else os.fspath(source)
    if name == "movielens":
        return _get_movielens(where, place, listener)
    arrests = name == "stop-and-frisk-arrests"
    if place is not None:
        chosen = None if years is None else stops.parse_years(years)
        return _stops_from(where, place, chosen, listener, arrests=arrests)
    if arrests:
        return _get_arrests(where, listener)
    wanted = stops.parse_years(stops.DEFAULT_YEARS if years is None else years)
    return KeptFiles.joined([_published_year(where, year, listener) for year in wanted])


def list_data(home: str | Path | None = None) -> list[dict[str, Any]]:
    """What can be got, and what of it is in the data home; plain JSON."""
    where = data.data_home(home)

    def years_here(*names: object) -> list[str]:
        kept = [str(name) for name in names if stops.kept_year(where, name).exists()]
        return kept + [path.name for path in stops.published_files(where)]

    ratings = movielens.find_ratings(where)
    here = {
        "movielens": [] if ratings is None else [str(ratings)],
        "stop-and-frisk": years_here(*YEARS),
        "stop-and-frisk-arrests": years_here(stops.ARRESTS, stops.ARRESTS_YEAR),
    }
    return [
        {
            "name": name,
            **facts,
            "here": here[name],
            "home": str(where),
            "command": f"fairsaoml data get {name}",
        }
        for name, facts in DATASETS.items()
    ]


# MovieLens ----------------------------------------------------------------------------------


def _get_movielens(home: Path, source: str | None, listener: Listener) -> KeptFiles:
    kept = movielens.cached_ratings(home)
    if source is None and _loads(listener, movielens.load_ratings, home):
        return _already_here("already here", kept)
    listener.say(DATASETS["movielens"]["licence"])
    page = DATASETS["movielens"]["page"]
    by_hand = f"download ml-100k.zip from {page} and run: {movielens.GET} --from ml-100k.zip"
    sha256 = GROUPLENS_SHA256 if source is None else None
    with _local(home, source or GROUPLENS_URL, listener, by_hand, sha256=sha256) as path:
        ratings = movielens.read_ratings(path)
        movielens.require_published(ratings, str(path))
    data.keep_table(ratings, kept)
    return KeptFiles((kept,))


# Stop-and-frisk -----------------------------------------------------------------------------


def nypd_url(year: int) -> str:
    """Where NYPD publishes a year.

    >>> nypd_url(2011).rsplit("/", 1)[1], nypd_url(2015).rsplit("/", 1)[1]
    ('sqf-2011-csv.zip', 'sqf-2015.csv')
    """
    zipped = year <= NYPD_LAST_ZIP
    folder, name = ("zip", f"sqf-{year}-csv.zip") if zipped else ("excel", f"sqf-{year}.csv")
    return f"{NYPD_FILES}/{folder}/analysis_and_planning/stop-question-frisk/{name}"


def _get_arrests(home: Path, listener: Listener) -> KeptFiles:
    copy = stops.kept_year(home, stops.ARRESTS)
    if _loads(listener, stops.load_arrests, home):
        return _already_here("already here", copy, stops.kept_year(home, stops.ARRESTS_YEAR))
    got = _published_year(home, stops.ARRESTS_YEAR, listener)
    copy.unlink(missing_ok=True)  # it was damaged, and would be taken first
    return got


def _published_year(home: Path, year: int, listener: Listener) -> KeptFiles:
    """One year from NYPD, unless it is here and sound."""
    if _loads(listener, stops.load_years, [year], home):
        return _already_here(f"{year}: already here", stops.kept_year(home, year))
    page = DATASETS["stop-and-frisk"]["page"]
    by_hand = f"look for the file at {page} and run: {stops.GET} --from FILE"
    with _local(home, nypd_url(year), listener, by_hand) as path:
        read = read_stops(path)
    if year not in read.counts or stops.not_whole(read, year):
        expected = f"{ROWS[year]:,} stops" if year in ROWS else "stops"
        raise DataError(
            f"{path.name}: expected {expected} of {year}, got {read.counts.get(year, 0):,}; "
            "nothing was kept: get it again"
        )
    return stops.keep_stops(read, home, [year])


def _stops_from(
    home: Path, source: str, years: Sequence[int] | None, listener: Listener, *, arrests: bool
) -> KeptFiles:
    """What fits of a file, or of the files in a folder; why the others do not."""
    with _local(home, source, listener) as path:
        alone = path.is_file()
        files = [path] if alone else stops.published_files(path)
        read = {file: read_stops(file) for file in files}
    if not read:
        raise DataError(
            f"{source}: expected NYPD's files (.csv, .csv.gz, .zip; the year in the name), got none"
        )
    if arrests:  # one year, one file: the one that holds most of it
        years = (stops.ARRESTS_YEAR,)
        best = max(read, key=lambda file: read[file].counts.get(stops.ARRESTS_YEAR, 0))
        read = {best: read[best]}
    kept, unused = [], []
    for file, content in read.items():
        parts = [note for year in content.counts for note in stops.not_whole(content, year)]
        if not arrests and not content.full:
            why = f"it has few columns, enough for: {stops.GET}-arrests --from FILE"
        elif years is not None and not set(years) & set(content.counts):
            wanted, got = (", ".join(map(str, some)) for some in (years, content.counts))
            why = f"expected stops of {wanted}, got {got}"
        elif parts and not alone:
            why = f"{'; '.join(parts)} (to use a part, name the file itself)"
        else:
            kept.append(stops.keep_stops(content, home, years or content.counts))
            continue
        unused.append(f"{file.name} is not used: {why}")
    if not kept:
        raise DataError("; ".join(unused))
    return KeptFiles.joined([*kept, KeptFiles((), tuple(unused))])


def _already_here(note: str, *places: Path) -> KeptFiles:
    """The first of the places that there is; published files stay where they are."""
    return KeptFiles(tuple([path for path in places if path.exists()][:1]), (note,))


def _loads(listener: Listener, load: Callable[..., object], *where: Any) -> bool:
    """Whether a data set is here and can be loaded; a damaged one is got again."""
    try:
        load(*where)
        return True
    except DataError as error:
        if not isinstance(error, data.NotHere):
            listener.say(str(error))
        return False


# Files on their way -------------------------------------------------------------------------


@contextmanager
def _local(
    home: Path, source: str, listener: Listener, by_hand: str = "", *, sha256: str | None = None
) -> Iterator[Path]:
    """A file or folder as it is; an address downloaded first, and its file removed after use.

    `by_hand`: what to do where the address is out of reach.
    """
    if "://" not in source:
        path = Path(source).expanduser()
        if not path.exists():
            raise DataError(
                f"expected a file, a folder or an https address, got {source!r}: not found"
            )
        yield path
        return
    target = home / "downloads" / (Path(urlsplit(source).path).name or "download")
    try:
        with listener.progress(target.name) as progress:
            path = data.download(source, target, sha256=sha256, progress=progress)
        yield path
    except data.OutOfReach as error:
        raise data.OutOfReach(f"{error}; {by_hand}" if by_hand else str(error)) from error
    finally:
        target.unlink(missing_ok=True)
