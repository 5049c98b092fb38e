"""Twenty streams that no setting of the learner was chosen on one by one.

    python -m tools.further_streams FOLDER --data HOME
    python -m tools.results play --rows "fairsaoml-decoupled" --streams a,b --tables FOLDER

Nine are real tables asked for something else (another label, another group, another cut); eleven
are made, with labels drawn from logits: worlds that turn suddenly or slowly, a label that flips,
rare labels and groups, several groups and attributes, what no linear model knows, wide and large
tables. HOME is a data home with `streams` and `stop-and-frisk`; FOLDER gets the tables and their
`commands.json`.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

BALANCED = "--set decision=balanced"
LETTERS = np.array(["a", "b", "c", "d"])
MADE_FLAGS = "--label y --positive yes --sensitive group --tasks 60"
TASKS = 60  # of a made stream

# Words that police officers tick, kept as yes or no.
TICKED = (
    "radio ac_rept ac_inves rf_vcrim ac_proxm cs_objcs cs_descr cs_casng cs_lkout cs_drgtr "
    "ac_evasv cs_furtv cs_vcrim cs_bulge ac_incid ac_time othpers"
)
LOAN_COLUMNS = (
    "as_of_year loan_type loan_purpose owner_occupancy loan_amount_000s preapproval state_abbr "
    "applicant_income_000s lien_status population minority_population hud_median_family_income "
    "tract_to_msamd_income number_of_owner_occupied_units approved race"
)


class Table(NamedTuple):
    """A stream: its rows, and the words that `fairsaoml run` is told beside the file."""

    name: str
    rows: pd.DataFrame
    flags: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, help="the data home; without it only made streams")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    commands = {}
    for table in (*(real(asked.data) if asked.data else ()), *made()):
        file = f"{table.name}.csv.gz"
        table.rows.to_csv(asked.folder / file, index=False)
        commands[table.name] = {"file": file, "flags": table.flags.split()}
        print(f"{table.name}: {len(table.rows):,} rows", flush=True)
    (asked.folder / "commands.json").write_text(json.dumps(commands, indent=1) + "\n")


# Real tables, asked for something else


def real(home: Path) -> Iterator[Table]:
    """Nine tables from six."""
    compas, bank, gss, loans = (
        pd.read_csv(home / "streams" / f"{name}.csv.gz")
        for name in ("compas", "bank", "gss", "hmda")
    )
    yield Table(
        "compas-sex",
        compas,
        "--label two_year_recid --positive 1 --sensitive sex --time compas_screening_date "
        f"--tasks 60 {BALANCED}",
    )
    young = np.where(bank["age"] < 35, "under35", "35plus")
    yield Table(
        "bank-age",
        bank.assign(young=young).drop(columns="age"),
        f"--label y --positive yes --sensitive young --time when --tasks 70 {BALANCED}",
    )
    married = np.where(gss["maritalcat"] == "Married", "married", "not")
    yield Table(
        "gss-married",
        gss.assign(wed=married).drop(columns="maritalcat"),
        "--label above --positive yes --sensitive wed --tasks 60",
    )
    full_time = np.where(gss["wrkstat"] == "Full-Time", "yes", "no")
    yield Table(
        "gss-fulltime",
        gss.assign(fulltime=full_time).drop(columns="wrkstat"),
        f"--label fulltime --positive yes --sensitive gender --tasks 120 {BALANCED}",
    )
    yield from _loans(loans[LOAN_COLUMNS.split()])
    yield from _stops(home / "stop-and-frisk")


def _loans(loans: pd.DataFrame) -> Iterator[Table]:
    known = loans.dropna(subset=["minority_population"])
    tract = np.where(known["minority_population"] > 50, "minority", "majority")
    yield Table(
        "hmda-tract",
        known.assign(tract=tract).drop(columns=["minority_population", "race"]),
        f"--label approved --positive yes --sensitive tract --tasks 50 {BALANCED}",
    )
    usual = np.where(loans["loan_type"] == "Conventional", "yes", "no")
    yield Table(
        "hmda-conventional",
        loans.assign(conventional=usual).drop(columns=["loan_type", "approved"]),
        f"--label conventional --positive yes --sensitive race --tasks 80 {BALANCED}",
    )


def _stops(home: Path) -> Iterator[Table]:
    stops = pd.read_csv(home / "nypd-sqf-2014-2016.csv.gz", low_memory=False)
    age = pd.to_numeric(stops["age"], errors="coerce")
    columns = {
        "date": stops["date"],
        "race": stops["race"].map({"B": "black", "Q": "hispanic", "P": "hispanic", "W": "white"}),
        "sex": stops["sex"],
        "age": age.where(age.between(10, 90)),
        "hour": stops["timestop"] // 100,
        "inout": stops["inout"],
        "where": stops["trhsloc"],
        "perobs": pd.to_numeric(stops["perobs"], errors="coerce").clip(0, 60),
        "idtype": stops["typeofid"],
        "uniform": stops["offunif"],
        "city": stops["city"],
        "weight": stops["weight"].clip(80, 350),
        "build": stops["build"],
        **{name: np.where(stops[name].isin(["Y", "1"]), "y", "n") for name in TICKED.split()},
        "arrest": stops["arstmade"],
        "searched": stops["searched"],
    }
    people = pd.DataFrame(columns)
    yield Table(
        "stops-arrest-3",
        people.dropna(subset=["race"]).drop(columns="searched"),
        f"--label arrest --positive Y --sensitive race --time date --tasks 60 {BALANCED}",
    )
    bronx = people[(people["city"] == "BRONX") & people["age"].notna()].iloc[:4800]
    bronx = bronx.assign(
        race=bronx["race"].fillna("other"),
        young=np.where(bronx["age"] < 25, "under25", "25plus"),
    )
    yield Table(
        "stops-search-40",
        bronx.drop(columns=["arrest", "city", "age"]),
        f"--label searched --positive Y --sensitive young --time date --rows 40 {BALANCED}",
    )
    arrests = pd.read_csv(home / "nypd-sqf-2011-arrests.csv.gz")
    queens = arrests[arrests["borough"] == "Queens"].dropna(subset=["lat"])
    queens = queens.assign(
        hour=queens["time"].str[:2].astype(int),
        weekday=pd.to_datetime(queens["date"]).dt.day_name(),
        pct_geo="p" + queens["pct_geo"].astype(int).astype(str),
        race=np.where(queens["race"] == "B", "black", "other"),
    )
    yield Table(
        "stops-large",
        queens[["date", "hour", "weekday", "lat", "lng", "pct_geo", "race", "arstmade"]],
        f"--label arstmade --positive Y --sensitive race --time date --every 6D {BALANCED}",
    )


# Made streams


class World(NamedTuple):
    """What a made stream's rows are drawn from in each round."""

    weights: Callable[[int], np.ndarray]  # of the columns, in the label's logit
    means: Callable[[int], np.ndarray]  # of the columns, group by group
    share: tuple[float, ...] = (0.5, 0.5)  # of the groups
    rows: int | tuple[int, int] = 300  # of a task, or the least and the most
    offset: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)  # of the groups' logits
    bias: Callable[[int], float] = lambda t: 0.0
    curved: Callable[[np.ndarray, int], np.ndarray] = lambda x, t: np.zeros(len(x))


def drawn(world: World, seed: int) -> pd.DataFrame:
    """All rows of a made stream, with the number of their task."""
    draw = np.random.default_rng(seed)
    tasks = []
    for t in range(TASKS):
        rows = world.rows if isinstance(world.rows, int) else int(draw.integers(*world.rows))
        group = draw.choice(len(world.share), rows, p=world.share)
        weights = world.weights(t)
        x = draw.normal(size=(rows, len(weights))) + world.means(t)[group]
        logit = x @ weights + world.bias(t) + np.array(world.offset)[group] + world.curved(x, t)
        task = pd.DataFrame(x.round(4), columns=[f"x{i}" for i in range(len(weights))])
        task["group"], task["task"] = LETTERS[group], t
        task["y"] = np.where(draw.random(rows) < 1 / (1 + np.exp(-logit)), "yes", "no")
        tasks.append(task)
    return pd.concat(tasks, ignore_index=True)


def vectors(seed: int, width: int, count: int, size: float) -> list[np.ndarray]:
    """Random weights or means, one for each phase of a stream."""
    draw = np.random.default_rng(seed)
    return [draw.normal(size=width) * size for _ in range(count)]


def made() -> Iterator[Table]:
    """Eleven streams whose truth is known."""
    for place, (name, world) in enumerate(worlds().items(), 1):
        rows = drawn(world, place)
        flags = MADE_FLAGS
        if name == "rarelabel":
            flags += f" {BALANCED}"
        if name == "2attributes":
            rows["sex"] = np.where(rows["group"].isin(["a", "b"]), "m", "f")
            rows["race"] = np.where(rows["group"].isin(["a", "c"]), "white", "black")
            rows = rows.drop(columns="group")
            flags = flags.replace("--sensitive group", "--sensitive sex --sensitive race")
        if name == "large":
            days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rows["task"], unit="D")
            rows["day"] = days.dt.strftime("%Y-%m-%d")
            flags = flags.replace("--tasks 60", "--time day --every 1D")
        yield Table(f"made-{name}", rows.drop(columns="task"), flags)
    yield Table("made-onehot80", words(), MADE_FLAGS)


def worlds() -> dict[str, World]:
    """The worlds of ten made streams; phases are thirds or halves of their rounds."""

    def thirds(values: list) -> Callable[[int], np.ndarray]:
        return lambda t: values[t // 20]

    def halves(values: list) -> Callable[[int], np.ndarray]:
        return lambda t: values[t // 30]

    def beside(*means: np.ndarray) -> np.ndarray:
        """The means of all groups, the first one's being 0."""
        return np.stack([np.zeros_like(means[0]), *means])

    abrupt, abrupt_means = vectors(11, 12, 3, 0.6), vectors(12, 12, 3, 0.5)
    begin, end = vectors(21, 10, 2, 0.7)
    near, far = np.linspace(-0.5, 0.8, 10), np.linspace(0.7, -0.4, 10)
    (steady,), (flipped,) = vectors(31, 10, 1, 0.7), vectors(41, 8, 1, 0.8)
    moved = [steady / np.linalg.norm(steady) * size for size in (-1.0, 1.0, 0.3)]
    rare, small = vectors(51, 10, 2, 0.7), vectors(61, 10, 2, 0.6)
    three, three_means = vectors(71, 10, 2, 0.6), vectors(72, 10, 4, 0.5)
    both, (sex, race, _) = vectors(81, 10, 2, 0.6), vectors(82, 10, 3, 0.4)
    plain, tilted = vectors(91, 8, 2, 0.3), np.array([0.5, 0.4, -0.3, 0.6, -0.5, 0, 0.3, 0])
    large, large_means = vectors(111, 15, 3, 0.5), vectors(112, 15, 3, 0.4)

    def slowly(t: int) -> np.ndarray:
        angle = t / (TASKS - 1) * np.pi / 2
        return begin * np.cos(angle) + end * np.sin(angle)

    def curved(x: np.ndarray, t: int) -> np.ndarray:
        k = t // 30
        corner = (x[:, 4] > 0) & (x[:, 5 - k] < 0.3)
        bends = 1.6 * x[:, k] * x[:, k + 1] + 1.8 * (x[:, 3] > 0.5) + 0.8 * np.abs(x[:, 6])
        return bends - 1.5 * corner - 0.9

    return {
        "abrupt": World(
            thirds(abrupt), lambda t: beside(abrupt_means[t // 20]), offset=(0.3, -0.5)
        ),
        "gradual": World(slowly, lambda t: beside(near + (far - near) * t / (TASKS - 1))),
        "groupshift": World(lambda t: steady, lambda t: beside(moved[t // 20])),
        "flip": World(halves([flipped, -flipped]), lambda t: beside(np.full(8, 0.35))),
        "rarelabel": World(
            halves(rare),
            lambda t: beside(0.3 * np.sign(rare[t // 30])),
            rows=600,
            bias=lambda t: (-5.25, -5.6)[t // 30],
        ),
        "raregroup": World(
            halves(small),
            lambda t: beside(-0.35 * np.sign(small[t // 30])),
            share=(0.96, 0.04),
            rows=500,
        ),
        "3groups": World(
            halves(three),
            lambda t: beside(three_means[t // 30], three_means[2 + t // 30]),
            share=(0.5, 0.3, 0.2),
            rows=450,
            offset=(0.4, 0.0, -0.6),
        ),
        "2attributes": World(
            halves(both),
            lambda t: beside(sex, race, sex + race),
            share=(0.35, 0.25, 0.22, 0.18),
            rows=400,
            offset=(0.4, 0.0, 0.1, -0.5),
        ),
        "nonlinear": World(halves(plain), lambda t: beside(tilted), rows=500, curved=curved),
        "large": World(
            thirds(large),
            lambda t: beside(large_means[t // 20]),
            rows=(2000, 3501),
            offset=(0.2, -0.4),
        ),
    }


def words() -> pd.DataFrame:
    """Four columns of twenty words each, whose shares differ between two groups."""
    draw = np.random.default_rng(10)
    worth = [draw.normal(size=(4, 20)) * 0.7 for _ in range(2)]
    shares = draw.dirichlet(np.full(20, 0.8), size=(2, 4)) * 0.6 + 0.02
    shares /= shares.sum(axis=2, keepdims=True)
    tasks = []
    for t in range(TASKS):
        group = draw.choice(2, 400, p=(0.6, 0.4))
        word = np.empty((400, 4), int)
        for code in (0, 1):
            own = group == code
            for column in range(4):
                word[own, column] = draw.choice(20, own.sum(), p=shares[code, column])
        x = draw.normal(size=400)
        logit = worth[t // 30][np.arange(4), word].sum(1) + np.array([0.3, -0.4])[group] + 0.6 * x
        task = pd.DataFrame(np.char.add("w", word.astype(str)), columns=["c0", "c1", "c2", "c3"])
        task["x"], task["group"] = x.round(4), LETTERS[group]
        task["y"] = np.where(draw.random(400) < 1 / (1 + np.exp(-logit)), "yes", "no")
        tasks.append(task)
    return pd.concat(tasks, ignore_index=True)


if __name__ == "__main__":
    main()
