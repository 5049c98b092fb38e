"""MovieLens 100K as a stream: will this person like this film (D22).

100,000 ratings in order of time; a rating above 3 counts as liked; the protected attribute is
gender. As in the paper there are three copies of all rows, the middle one with every feature times
-1 (after scaling), each cut into 30 tasks of equal size: 90 tasks in three domains.

Features "paper": age, occupation, the film's genres. "items" adds the film itself, one feature for
each of 1,682. The age is scaled by the first task; occupations, genres and films are the published
lists. Ids of people, titles, dates and zip codes are no features.
"""

import io
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from fairsaoml.core.errors import ConfigError, DataError, closest
from fairsaoml.streams.datasets.home import NotHere, data_home, home_setting, kept_table
from fairsaoml.streams.stream import Stream
from fairsaoml.streams.table.columns import checksum
from fairsaoml.streams.table.encoder import Categorical
from fairsaoml.streams.table.groups import Sensitive
from fairsaoml.streams.table.kinds import fit_encoder
from fairsaoml.streams.table.roles import Label
from fairsaoml.streams.table.stream import equal_slices, stream_of_slices

GET = "fairsaoml data get movielens"
FOLDERS = ("movielens", "movielens-100k", "ml-100k")  # a copy of the files may lie in any of them
DIGEST = "cbd38768c4aae7cdbd175ac0cafd00679abbf5b71e428fb9f1cc19a6e2792230"  # of all values

TASKS = 30  # per copy
COPIES = {"first copy": 1.0, "flipped copy": -1.0, "third copy": 1.0}  # domain -> sign
LIKED = 3  # ratings above it
FEATURES = ("paper", "items")

_PUBLISHED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
GENRES, OCCUPATIONS = (tuple(_PUBLISHED[name]) for name in ("genres", "occupations"))
GENRE_COLUMNS = tuple(f"genre_{genre}" for genre in GENRES)
GENDERS = ("M", "F")
FILMS = 1682
_FILES = {  # the published ones: what separates their columns, and these
    "u.data": ("\t", ["user", "item", "rating", "timestamp"]),
    "u.user": ("|", ["user", "age", "gender", "occupation", "zip"]),
    "u.item": ("|", ["item", "title", "released", "on_video", "page", *GENRE_COLUMNS]),
}
_KEPT = {  # the columns of a rating
    **dict.fromkeys(("user", "item", "rating", "timestamp", "age"), pa.int32()),
    **dict.fromkeys(("gender", "occupation"), pa.dictionary(pa.int32(), pa.string())),
    **dict.fromkeys(GENRE_COLUMNS, pa.int8()),
}
_FEW_BYTES = 1 << 24  # none of them is nearly as long


def movielens(*, features: str = "paper", home: str | Path | None = None) -> Stream:
    """The 90 tasks, from the data home; `features` is "paper" or "items"."""
    if features not in FEATURES:
        raise ConfigError(
            f"expected features to be one of {', '.join(FEATURES)}, got {features!r}; "
            f"{closest(features, FEATURES)}"
        )
    return stream_of_ratings(load_ratings(data_home(home)), features, home_setting(home))


def stream_of_ratings(ratings: Any, features: str = "paper", settings: Mapping = {}) -> Stream:
    """The stream of any ratings in the columns of `read_ratings`."""
    liked = pc.if_else(pc.greater(ratings["rating"], LIKED), "yes", "no")
    table = ratings.append_column("liked", liked)
    copies = (equal_slices(table, TASKS, domain, sign) for domain, sign in COPIES.items())
    slices = [*chain.from_iterable(copies)]
    age = fit_encoder(slices[0].table.select(["age"]), kinds={"age": "numeric"})
    known = {"occupation": OCCUPATIONS, **dict.fromkeys(GENRE_COLUMNS, ("0", "1"))}
    if features == "items":
        known["item"] = tuple(str(number) for number in range(1, FILMS + 1))
    listed = [Categorical(name=name, levels=levels) for name, levels in known.items()]
    label = Label(column="liked", positive="yes", negative="no")
    gender = Sensitive(column="gender", levels=GENDERS)
    encoder = replace(age, columns=(*age.columns, *listed), label=label, sensitive=(gender,))
    settings = {"features": features, **settings}
    return stream_of_slices("movielens", slices, encoder, settings=settings, notes=encoder.notes())


# The files ----------------------------------------------------------------------------------


def cached_ratings(home: Path) -> Path:
    """Where `fairsaoml data get movielens` puts the ratings."""
    return home / FOLDERS[0] / "ratings.parquet"


def find_ratings(home: Path) -> Path | None:
    """The ratings in a data home: as `data get` keeps them, or a folder of the published files."""
    if cached_ratings(home).exists():
        return cached_ratings(home)
    return next((home / name for name in FOLDERS if (home / name / "u.data").exists()), None)


def load_ratings(home: Path) -> Any:
    """The published ratings from a data home."""
    path = find_ratings(home)
    if path is None:
        raise NotHere.of("MovieLens 100K", home, GET)
    ratings = kept_table(path, GET) if path.is_file() else read_ratings(path)
    require_published(ratings, str(path))
    return ratings


def read_ratings(source: Path) -> Any:
    """The ratings in order of time, from the published files.

    `source` is a folder, or GroupLens' archive ml-100k.zip.
    """
    files = _files(source)
    if len(files) < len(_FILES):
        raise DataError(
            f"{source}: expected {', '.join(_FILES)} of MovieLens 100K (ml-100k.zip), got "
            f"{', '.join(sorted(files)) or 'none of them'}"
        )
    ratings, people, films = (_parsed(name, files[name]) for name in _FILES)
    for name, values, known in (
        ("user", ratings["user"], people["user"].to_pylist()),
        ("item", ratings["item"], films["item"].to_pylist()),
        ("gender", people["gender"], GENDERS),
        ("occupation", people["occupation"], OCCUPATIONS),
    ):
        if strange := set(values.to_pylist()).difference(known):
            raise DataError(
                f"{source}: expected no {name} but those that MovieLens lists, got "
                f"{min(strange, key=str)!r}"
            )
    table = ratings.join(people, "user").join(films, "item").select([*_KEPT])
    # Equal times are told apart by user and film, so that order is given.
    order = [(name, "ascending") for name in ("timestamp", "user", "item")]
    return table.sort_by(order).combine_chunks()


def require_published(ratings: Any, origin: str) -> None:
    """Refuse ratings that are not exactly the published ones, whichever way they came."""
    if checksum(ratings) != DIGEST:
        raise DataError(
            f"{origin}: expected the 100,000 ratings of MovieLens 100K, got others "
            f"({ratings.num_rows:,} rows); get them again with: {GET}"
        )


def _files(source: Path) -> dict[str, bytes]:
    """The known files by name, from a folder or an archive, at whatever depth."""
    if source.is_dir():
        paths = [*source.iterdir(), *source.glob("*/*")]
        return {path.name: path.read_bytes() for path in reversed(paths) if path.name in _FILES}
    try:
        with zipfile.ZipFile(source) as archive:
            return {
                Path(entry.filename).name: archive.read(entry)
                for entry in archive.infolist()
                if Path(entry.filename).name in _FILES and entry.file_size < _FEW_BYTES
            }
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise DataError(
            f"{source}: expected a folder or a whole zip archive, got neither ({error})"
        ) from error


def _parsed(name: str, content: bytes) -> Any:
    """The table in a file."""
    separator, columns = _FILES[name]
    kept = [column for column in columns if column in _KEPT]
    read = csv.ReadOptions(column_names=columns, encoding="latin-1")
    parse = csv.ParseOptions(delimiter=separator, quote_char=False)
    convert = csv.ConvertOptions(column_types=_KEPT, include_columns=kept)
    try:
        return csv.read_csv(io.BytesIO(content), read, parse, convert)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{name}: expected a file of MovieLens 100K, got one that is damaged or cut short "
            f"({error})"
        ) from error
