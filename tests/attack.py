"""`make attack`: thousands of spoiled inputs of every kind; each gives a result or a sentence.

    python -m tests.attack --inputs 2500

Every input is made from its kind, its number and the seed alone, so that a finding is repeated by
`--kind KIND --only NUMBER`. What may come back: what was written, something older that was written,
or one of our own errors. Anything else, and any input that takes longer than `SLOW` seconds, is a
finding.
"""

import argparse
import json
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fairsaoml.cli.settings import parse_settings, parse_value
from fairsaoml.core.errors import FairSAOMLError
from fairsaoml.learners.registry import configure, registered
from fairsaoml.runs.checkpoint import load_checkpoint, save_checkpoint
from fairsaoml.runs.folder import read_spec, write_spec
from fairsaoml.runs.journal import read_rounds, whole_rounds
from fairsaoml.streams.table.encoder import Encoder
from fairsaoml.streams.table.stream import encode_rows, stream_from_table

SLOW = 20.0  # seconds; a hang, on any machine
NASTY: list[Any] = [
    *("", "?", "NaN", "inf", "-inf", "1e999", "1e308", "-1e-320", "0001-01-01", "13/13/2011"),
    *("2011-02-30", "[/north]", "=cmd|'/c'!A1", "<script>", "é", "\x00", "\ud7ff", '"', "'", ","),
    *(None, True, -1, 0, 10**30, 1e30, float("nan"), [], {}, "9" * 5_000, "[" * 5_000, "age>40"),
]


def spoiled(random: Random, content: bytes) -> bytes:
    """Content with a few bytes flipped, cut, doubled or put in."""
    for _ in range(random.choice((1, 1, 2, 8))):
        at = random.randrange(len(content) + 1)
        end = min(len(content), at + random.choice((1, 1, 4, 64)))
        middle = {
            "flip": bytes(byte ^ (1 << random.randrange(8)) for byte in content[at:end]),
            "cut": b"",
            "double": content[at:end] * 2,
            "put": random.randbytes(random.choice((1, 4, 40))),
            "text": str(random.choice(NASTY)).encode("utf-8", "replace"),
            "end": content[:at] and b"",
        }
        way = random.choice(list(middle))
        content = content[:at] if way == "end" else content[:at] + middle[way] + content[end:]
    return content


def table_bytes(random: Random) -> bytes:
    """A small CSV file with odd values here and there."""
    lines = ["id,when,age,pay,job,sex,hired"]
    for row in range(random.choice((2, 30, 60))):
        values: list[Any] = [row, f"2020-01-{1 + row % 28:02d}", random.randrange(18, 70)]
        values += [round(random.gauss(0, 1), 3), random.choice("abc"), random.choice("fm")]
        values.append(random.choice(("yes", "no")))
        if random.random() < 0.02:
            values[random.randrange(7)] = random.choice(NASTY)
        lines.append(",".join(map(str, values)))
    end = random.choice(("\n", "\n", "\r\n", "\r"))
    return end.join(lines).encode(random.choice(("utf-8", "utf-8", "latin-1", "utf-16")), "replace")


def attack_table(random: Random, home: Path) -> None:
    """A spoiled file is a stream of finite rows, or refused."""
    path = home / random.choice(("t.csv",) * 9 + ("t.tsv", "t.csv.gz", "t.parquet"))
    content = table_bytes(random)
    path.write_bytes(spoiled(random, content) if random.random() < 0.5 else content)
    options: dict[str, Any] = {"label": "hired", "sensitive": "sex"}
    for key in ("rows", "tasks", "every", "time", "domain", "positive", "drop", "time_format"):
        if random.random() < 0.15:
            sensible = {"rows": 10, "tasks": 3, "every": "1D", "time": "when", "domain": "job"}
            options[key] = sensible.get(key, "age") if random.random() < 0.7 else choice(random)
    if random.random() < 0.3:
        options["sensitive"] = random.choice(("age>40", "age:30,50", "sex*job", "job=a", "*", "x"))
    try:
        stream = stream_from_table(path, **options)
        for task in stream.tasks(0):
            assert np.isfinite(task.x).all()
            assert np.isin(task.y, (0, 1)).all()
            assert task.x.shape[1] == len(stream.schema.features)
    finally:
        path.unlink()


def choice(random: Random) -> Any:
    return random.choice(NASTY)


def attack_settings(random: Random, home: Path) -> None:
    """A setting is taken or refused, typed or given."""
    name = random.choice(list(registered()))
    settings = registered()[name].settings
    given: dict[str, Any] = {key: settings[key].default for key in random.sample([*settings], k=2)}
    if random.random() < 0.7:
        given[random.choice([*settings, "nonsense"])] = choice(random)
    parse_settings([f"{key}={value}" for key, value in given.items()])
    parse_value(str(choice(random)))
    config = configure(name, given)
    assert configure(name, json.loads(json.dumps(config.to_dict()))) == config


ENCODER = json.dumps(
    {
        "version": 2,
        "columns": [
            {"kind": "numeric", "name": "v", "center": 0.5, "scale": 2.0},
            {"kind": "categorical", "name": "job", "levels": ["a", "b", "c"], "fold": True},
            {"kind": "date", "name": "d", "format": "year-month-day", "center": 0.0, "scale": 1e7},
        ],
        "dropped": [{"name": "id", "reason": "an id"}],
        "label": {"column": "y", "positive": "yes", "negative": "no"},
        "sensitive": [{"column": "sex", "levels": ["f", "m"], "fold": True}],
    }
)


def attack_encoder(random: Random, home: Path) -> None:
    """A spoiled encoder is refused, or encodes to finite numbers of its own width."""
    try:
        saved = json.loads(spoiled(random, ENCODER.encode()).decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return  # the file that holds it is refused
    encoder = Encoder.from_json(saved)
    rows = {"v": [1.0, None], "job": ["a", "z"], "d": ["2011-01-01", "?"]}
    import pyarrow as pa

    x, _ = encode_rows(saved, pa.table(rows))
    assert x.shape == (2, len(encoder.features))


SPEC = {"schema": 1, "learner": {"name": "aod", "config": {"a": 0.0123456789}}, "seeds": [0]}


def attack_spec(random: Random, home: Path) -> None:
    """spec.json is what was written, or refused."""
    write_spec(home, dict(SPEC))
    path = home / "spec.json"
    content = path.read_bytes()
    path.write_bytes(spoiled(random, content))
    try:
        read = read_spec(home)
        assert read == SPEC or b"seal" not in path.read_bytes()
    finally:
        path.unlink()


def attack_checkpoint(random: Random, home: Path, part: str = "*.safetensors") -> None:
    """A state is the newest one that was written, the one before, or refused."""
    folder = home / "checkpoint"
    states = [{"w": np.arange(5, dtype=np.float32) + round} for round in (1, 2)]
    for round, state in enumerate(states, 1):
        save_checkpoint(folder, round, state, {"learner": "aod"})
    for path in random.sample(sorted(folder.glob(part)), k=random.choice((1, 1, 2))):
        path.write_bytes(spoiled(random, path.read_bytes()))
    try:
        read = load_checkpoint(folder, states[0])
        assert read is not None
        np.testing.assert_array_equal(read.state["w"], states[read.round - 1]["w"])
    finally:
        for path in folder.iterdir():
            path.unlink()


def attack_manifest(random: Random, home: Path) -> None:
    """The same, its description spoiled."""
    attack_checkpoint(random, home, "*.json")


def attack_journal(random: Random, home: Path) -> None:
    """A journal is read as far as it is one; no round is counted twice or made up."""
    path = home / "rounds.jsonl"
    lines = [json.dumps({"round": 1 + n // 2, "seed": n % 2, "accuracy": 0.5}) for n in range(12)]
    path.write_bytes(spoiled(random, ("\n".join(lines) + "\n").encode()))
    assert 0 <= whole_rounds(path, 2) <= 7
    read_rounds(path)


KINDS: dict[str, Callable[[Random, Path], None]] = {
    "table": attack_table,
    "settings": attack_settings,
    "encoder": attack_encoder,
    "spec": attack_spec,
    "manifest": attack_manifest,
    "checkpoint": attack_checkpoint,
    "journal": attack_journal,
}


def attack(kind: str, numbers: range, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """Run the inputs of a kind; return how they ended, and the findings."""
    ended: Counter[str] = Counter()
    findings = []
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in numbers:
            begun = time.monotonic()
            try:
                KINDS[kind](Random(f"{seed} {kind} {number}"), Path(folder))
                ended["taken"] += 1
            except FairSAOMLError:
                ended["refused"] += 1
            except Exception:
                ended["found"] += 1
                findings.append(f"{kind} {number}:\n{traceback.format_exc()}")
            if time.monotonic() - begun > SLOW:
                findings.append(f"{kind} {number}: took {time.monotonic() - begun:.0f} s")
    return ended, findings


def main() -> None:
    """Attack every kind, print counts, exit 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=3_000, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--only", type=int, help="the number of one input")
    asked = parser.parse_args()
    numbers = range(asked.inputs) if asked.only is None else range(asked.only, asked.only + 1)
    found = []
    for kind in [asked.kind] if asked.kind else KINDS:
        begun = time.monotonic()
        ended, findings = attack(kind, numbers, asked.seed)
        print(f"{kind}: {len(numbers)} inputs, {dict(ended)}, {time.monotonic() - begun:.0f} s")
        found += findings
    print("\n".join(found[:20]))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
