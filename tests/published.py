"""Small hand-made files in the formats of the publishers, and the way to the real ones."""

import csv
import io
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from fairsaoml.streams.datasets.movielens import GENRES, OCCUPATIONS

REAL = Path(__file__).resolve().parents[2] / "shared" / "data"
needs_real_data = pytest.mark.skipif(not REAL.is_dir(), reason=f"no real data in {REAL}")

# The 112 columns of 2011 to 2016, in their order.
_COLUMNS = """year pct ser_num datestop timestop recstat inout trhsloc perobs crimsusp perstop
typeofid explnstp othpers arstmade arstoffn sumissue sumoffen compyear comppct offunif officrid
frisked searched contrabn adtlrept pistol riflshot asltweap knifcuti machgun othrweap pf_hands
pf_wall pf_grnd pf_drwep pf_ptwep pf_baton pf_hcuff pf_pepsp pf_other radio ac_rept ac_inves
rf_vcrim rf_othsw ac_proxm rf_attir cs_objcs cs_descr cs_casng cs_lkout rf_vcact cs_cloth cs_drgtr
ac_evasv ac_assoc cs_furtv rf_rfcmp ac_cgdir rf_verbl cs_vcrim cs_bulge cs_other ac_incid
ac_time rf_knowl ac_stsnd ac_other sb_hdobj sb_outln sb_admis sb_other repcmd revcmd rf_furt
rf_bulg offverb offshld forceuse sex race dob age ht_feet ht_inch weight haircolr eyecolor build
othfeatr addrtyp rescode premtype premname addrnum stname stinter crossst aptnum city state zip
addrpct sector beat post xcoord ycoord dettypcm linecm detailcm"""
NYPD_COLUMNS = _COLUMNS.split()
CITIES = {"BROOKLYN": 75, "MANHATTAN": 23, "QUEENS": 103, "BRONX": 44, "STATEN ISLAND": 120}

Stop = dict[str, str]


def stops(count: int = 400, *, year: int = 2012, seed: int = 0) -> list[Stop]:
    """Stops of one year as NYPD publishes them, out of order."""
    draw = random.Random(seed)
    boxes = [name for name in NYPD_COLUMNS if name[:3] in ("cs_", "ac_", "rf_", "sb_", "pf_")]
    made = []
    for number in range(count):
        city = list(CITIES)[number % len(CITIES)]
        made.append(
            dict.fromkeys(NYPD_COLUMNS, " ")
            | {name: draw.choice("YN") for name in (*boxes, "radio", "offunif", "searched")}
            | {
                "year": str(year),
                "pct": str(CITIES[city]),
                "city": city,
                "datestop": f"{draw.randint(1, 12)}{draw.randint(1, 28):02}{year}",
                "timestop": str(100 * draw.randrange(24) + draw.randrange(60)),
                "frisked": draw.choice("YN"),
                "arstmade": draw.choice("YN"),
                "race": draw.choice("BPQWA"),
                "inout": draw.choice("IO"),
                "trhsloc": draw.choice("PHT"),
                "sex": draw.choice("MF"),
                "build": draw.choice("TMH"),
                "detailcm": draw.choice(("20", "85", "14")),
                "age": str(draw.randint(14, 60)),
                "ht_feet": "5",
                "ht_inch": str(draw.randrange(12)),
                "weight": str(draw.randint(120, 220)),
                "perobs": f"{draw.randint(1, 5)}.00",
                "crimsusp": "FELONY, OTHER",
            }
        )
    return made


def nypd_csv(
    rows: Sequence[Stop],
    *,
    rename: Callable[[str], str] = str,
    values: Callable[[str, str], str] = lambda name, value: value,
    start: str = "",
    end: str = "",
) -> bytes:
    """The rows as a CSV file, in another year's spelling if one is given."""
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow([rename(name) for name in rows[0]])
    table.writerows([[values(name, row[name]) for name in row] for row in rows])
    return (start + text.getvalue() + end).encode("latin-1")


def grouplens(folder: Path, ratings: int = 90, *, seed: int = 0) -> Path:
    """A folder with u.data, u.user and u.item."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in grouplens_files(ratings, seed=seed).items():
        (folder / name).write_bytes(content.encode("latin-1"))
    return folder


def grouplens_files(ratings: int = 90, *, seed: int = 0) -> Mapping[str, str]:
    """Nine people, twenty films, each rating in another minute, out of order."""
    draw = random.Random(seed)
    people = [
        f"{user}|{draw.randint(18, 70)}|{'MF'[user % 2]}|{OCCUPATIONS[user]}|55455"
        for user in range(1, 10)
    ]
    films = [
        f"{film}|Caf\xe9 {film} (1995)|01-Jan-1995||http://example.org/{film}|"
        + "|".join(str(int(draw.random() < 0.2)) for _ in GENRES)
        for film in range(1, 21)
    ]
    rows = [
        f"{draw.randint(1, 9)}\t{draw.randint(1, 20)}\t{draw.randint(1, 5)}\t{881250949 + 60 * at}"
        for at in draw.sample(range(ratings), ratings)
    ]
    files = {"u.data": rows, "u.user": people, "u.item": films}
    return {name: "\n".join(lines) + "\n" for name, lines in files.items()}
