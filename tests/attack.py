"""`make attack`: thousands of spoiled inputs of every kind; each gives a result or a sentence.

    make attack, or PYTHONPATH=tests python -m attack --inputs 2300 --kind journal

Hypothesis makes the inputs, the same ones for the same seed, and shrinks what it finds. An input
may be refused, by one of our own errors or by an HTTP status below 500. Or it is taken: then tables
are finite numbers, settings are read back as they are, and a run that was killed and whose files
were spoiled before it was resumed ends with the journal and the summary of one that never was.
Anything else is a finding, and so is an input that takes longer than `SLOW` seconds.
"""

import argparse
import atexit
import json
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

import hypothesis
import jax
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from fairsaoml.cli.options import parse_settings, parse_value, read_config
from fairsaoml.core.errors import FairSAOMLError
from fairsaoml.evaluate.records import RoundResult
from fairsaoml.learners.registry import configure, registered
from fairsaoml.report.reading import read_run
from fairsaoml.runs import runner, saved
from fairsaoml.runs.spec import RunSpec
from fairsaoml.streams.table.encoder import Encoder
from fairsaoml.streams.table.stream import stream_from_table

SLOW = 30  # seconds; a hang, on any machine
MEMORY = Path("/dev/shm")  # where it exists, files are not waited for
NASTY: list[Any] = [
    *("", "?", "NaN", "inf", "-inf", "1e999", "1e308", "-1e-320", "0001-01-01", "13/13/2011"),
    *("2011-02-30", "[/north]", "=cmd|'/c'!A1", "<script>", "é", "\x00", "\ud7ff", '"', "'", ","),
    *(None, True, -1, 0, 10**30, 1e30, float("nan"), [], {}, "9" * 5_000, "[" * 5_000, "age>40"),
]
WHOLES = (b"[" * 100_000, b"{}", b"null", b"[]")  # in place of a file
nasty = st.sampled_from(NASTY)
odd_bytes = st.binary(max_size=40) | nasty.map(lambda value: str(value).encode("utf-8", "replace"))


@st.composite
def spoiled(draw: Callable, content: bytes) -> bytes:
    """Content with a few places flipped, cut out, or overwritten; or with its end cut off."""
    for _ in range(draw(st.sampled_from((1, 1, 2, 6)))):
        at = draw(st.integers(0, len(content)))
        end = at + draw(st.sampled_from((1, 1, 4, 64)))
        way = draw(st.sampled_from(("flip", "flip", "cut", "put", "double", "end", "whole")))
        bit = 1 << draw(st.integers(0, 7))
        middle = {
            "flip": bytes(byte ^ bit for byte in content[at:end]),
            "cut": b"",
            "double": content[at:end] * 2,
            "put": draw(odd_bytes) if way == "put" else b"",
            "end": b"",
            "whole": draw(st.sampled_from(WHOLES) | odd_bytes) if way == "whole" else b"",
        }[way]
        before, after = content[:at], content[end:]
        content = middle if way == "whole" else before + middle + (b"" if way == "end" else after)
    return content


# Tables and settings


@st.composite
def tables(draw: Callable) -> tuple[str, bytes, dict[str, Any]]:
    """A small CSV file with odd values here and there, its name, and options to read it with."""
    row = st.tuples(
        st.integers(18, 70), st.floats(-3, 3), st.sampled_from("abc"), st.sampled_from("fm")
    )
    people = draw(st.lists(row, min_size=draw(st.sampled_from((2, 20, 20))), max_size=40))
    lines = [
        [i, f"2020-01-{1 + i % 28:02d}", *person, ("yes", "no")[i * i % 3 > 0]]
        for i, person in enumerate(people)
    ]
    for _ in range(draw(st.sampled_from((0, 0, 1, 3)))):
        lines[draw(st.integers(0, len(lines) - 1))][draw(st.integers(0, 6))] = draw(nasty)
    text = draw(st.sampled_from(("\n", "\n", "\r\n", "\r"))).join(
        ",".join(map(str, line))
        for line in [["id", "when", "age", "pay", "job", "sex", "hired"], *lines]
    )
    coding = draw(st.sampled_from(("utf-8", "utf-8", "latin-1", "utf-16")))
    content = text.encode(coding, "replace")
    content = draw(st.one_of(st.just(content), st.just(content), spoiled(content)))
    sensible = {"rows": 10, "tasks": 3, "every": "1D", "time": "when", "domain": "job"}
    keys = ("rows", "tasks", "every", "time", "domain", "positive", "drop", "time_format")
    chosen = draw(st.lists(st.sampled_from(keys), max_size=2))
    usual = [st.just(sensible.get(key, "age")) for key in chosen]
    options = {k: draw(st.one_of(u, u, u, nasty)) for k, u in zip(chosen, usual, strict=True)}
    groups = ("sex",) * 4 + ("age>40", "age:30,50", "sex*job", "job=a", "*")
    options["sensitive"] = draw(st.sampled_from(groups))
    name = draw(st.sampled_from(("t.csv",) * 9 + ("t.tsv", "t.csv.gz", "t.parquet")))
    return name, content, {"label": "hired", **options}


def check_table(given: tuple[str, bytes, dict[str, Any]], home: Path) -> None:
    """A spoiled file is a stream of finite rows, or refused."""
    name, content, options = given
    path = home / name
    path.write_bytes(content)
    stream = stream_from_table(path, **options)
    for task in stream.tasks(0):
        assert np.isfinite(task.x).all()
        assert np.isin(task.y, (0, 1)).all()
        assert task.x.shape[1] == len(stream.schema.features)


@st.composite
def settings(draw: Callable) -> tuple[str, dict[str, Any], str]:
    name = draw(st.sampled_from(sorted(registered())))
    known = registered()[name].settings
    value = nasty | st.integers() | st.floats() | st.text(max_size=8) | st.lists(nasty, max_size=2)
    keys = st.sampled_from([*known, "nonsense"])
    given = draw(st.dictionaries(keys, value, max_size=2))
    for key in draw(st.lists(st.sampled_from([*known]), max_size=2)):
        given.setdefault(key, known[key].default)
    return name, given, draw(st.text(max_size=20))


def check_settings(given: tuple[str, dict[str, Any], str], home: Path) -> None:
    """A setting is taken and read back, or refused; so are words and TOML files."""
    name, values, text = given
    parse_value(text)
    parse_settings([f"{key}={value}" for key, value in values.items()])
    with suppress(FairSAOMLError):
        (home / "c.toml").write_text(text, errors="replace")
        read_config(home / "c.toml")
    config = configure(name, values)
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
).encode()


def check_encoder(content: bytes, home: Path) -> None:
    """A spoiled encoder is refused, or encodes to numbers of its own width."""
    try:
        saved = json.loads(content.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return  # the file that holds it is refused
    encoder = Encoder.from_json(saved)
    rows = {"v": [1.0, None], "job": ["a", "z"], "d": ["2011-01-01", "?"]}
    assert encoder.transform(pa.table(rows)).shape == (2, len(encoder.features))


# A run that was killed, its files spoiled, and resumed

ROUNDS = 4  # killed in the last one; the two before it are saved
LEARNER = "fair-glc"


def counting(stream: Any, *_: Any, state: Any = None, after: int = 0, **__: Any) -> Iterator[Any]:
    """In place of `prequential`: a state that depends on every round's rows, without numerics."""
    total = np.zeros(3, np.float32) if state is None else np.asarray(state["total"])
    for round, task in enumerate(stream.tasks(0), start=1):
        if round > after:
            total = (0.5 * total + round + np.float32(task.x.sum() + task.y.sum())).astype("f")
            groups = {}
            for code, group in enumerate(stream.schema.attributes[0].levels):
                own = task.y[task.group[:, 0] == code]
                y1, y0 = int(own.sum()), int(len(own) - own.sum())
                cell = {"rows": len(own), "predicted_positive": y1, "y1_rows": y1}
                groups[group] = cell | {"true_positive": y1, "y0_rows": y0, "false_positive": 0}
            line = {"round": round, "seed": 0, "domain": task.domain, "rows": len(task.y)}
            line |= {"accuracy": 0.5, "loss": float(total[0]), "counts": {"sex": groups}}
            yield RoundResult(round, [{**line, "seconds": 0.0}], [], {"total": total})


class Killed(NamedTuple):
    """A run that was killed: its table, all its files, and what it would have ended with."""

    table: bytes
    files: dict[str, bytes]
    journal: bytes
    summary: bytes


@contextmanager
def without_numerics() -> Iterator[None]:
    like = {"total": jax.ShapeDtypeStruct((3,), np.float32)}
    with (
        patch.object(runner, "prequential", counting),
        patch.object(saved, "states_like", lambda spec, setup: like),
        patch.object(runner, "one_thread", lambda: None),
        patch.dict("os.environ", {runner.INTERVAL: "0"}),
    ):
        yield


@cache
def killed() -> Killed:
    with TemporaryDirectory() as home, without_numerics():
        table, folder = Path(home) / "t.csv", Path(home) / "run"
        rows = [f"{i % 7 - i % 3},{'fm'[i % 2]},{'yn'[i % 5 > 2]}" for i in range(ROUNDS * 10)]
        table.write_text("\n".join(["v,sex,y", *rows, ""]))
        spec = RunSpec(
            stream=str(table),
            stream_settings={"label": "y", "sensitive": "sex", "rows": 10},
            learner=LEARNER,
            seeds=(0,),
        )

        def stop(setup: Any, result: RoundResult) -> None:
            if result.round == ROUNDS:
                raise KeyboardInterrupt

        with suppress(KeyboardInterrupt):
            runner.run(spec, folder, on_round=stop)
        files = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        runner.resume(folder)
        undisturbed = [(folder / name).read_bytes() for name in ("rounds.jsonl", "summary.json")]
        return Killed(table.read_bytes(), files, *undisturbed)


@st.composite
def spoiled_runs(draw: Callable, part: str) -> dict[str, bytes]:
    """The files of the killed run, some of this part spoiled; `t.csv` is its table."""
    files = killed().files | {"../t.csv": killed().table}
    names = sorted(name for name in files if part in name)
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)):
        files = {**files, name: draw(spoiled(files[name]))}
    return files


def check_run(files: dict[str, bytes], home: Path) -> None:
    """A spoiled run is refused, or ends as one that nothing has happened to."""
    folder = home / "run"
    rmtree(folder, ignore_errors=True)
    (folder / "checkpoint").mkdir(parents=True)
    for name, content in files.items():
        # The run's table was elsewhere: it is found as seen from the run's folder.
        (folder / name).write_bytes(content)
    with without_numerics():
        runner.resume(folder)
        assert (folder / "rounds.jsonl").read_bytes() == killed().journal
        assert (folder / "summary.json").read_bytes() == killed().summary


def check_journal(files: dict[str, bytes], home: Path) -> None:
    """The same; and a finished run's journal that was spoiled is not reported as if it were not."""
    with suppress(FairSAOMLError):
        check_run(files, home)
    folder = home / "run"
    (folder / "rounds.jsonl").write_bytes(files["rounds.jsonl"])
    (folder / "summary.json").unlink(missing_ok=True)
    lines = [json.loads(line) for line in killed().journal.splitlines()]
    assert list(read_run(folder).lines)[: ROUNDS - 1] == lines[:-1]


# HTTP

BODIES = {
    "predict": {"rows": [{"id": "a", "age": 30, "job": "nurse", "sex": "f"}] * 2},
    "labels": {"labels": [{"id": "a", "label": "yes"}, {"id": "b", "label": "no", "group": "f"}]},
    "never": {"ids": ["a", 7]},
    "erase": {"ids": ["b"]},
}
words = st.sampled_from(["rows", "labels", "ids", "id", "age", "job", "sex", "label", "group", "x"])
plain = nasty | st.integers() | st.floats() | st.text(max_size=6)
anything = st.recursive(
    plain, lambda some: st.lists(some, max_size=3) | st.dictionaries(words, some, max_size=4)
)


@st.composite
def requests(draw: Callable) -> tuple[str, bytes, str]:
    """A path, a body, its content type."""
    path = draw(st.sampled_from(sorted(BODIES)))
    body = json.dumps(BODIES[path]).encode()
    name = next(iter(BODIES[path]))
    whole = st.lists(anything, max_size=3).map(lambda items: json.dumps({name: items}).encode())
    body = draw(spoiled(body) | whole | anything.map(lambda it: json.dumps(it).encode()))
    kinds = ("application/json",) * 8 + ("application/x-ndjson", "text/plain", "")
    return path, body, draw(st.sampled_from(kinds))


OPEN = ExitStack()  # for as long as the process lives
atexit.register(OPEN.close)


@cache
def client() -> Any:
    """A service on a run of a small table."""
    import serving

    folder = Path(OPEN.enter_context(TemporaryDirectory()))
    return OPEN.enter_context(serving.serving(serving.make_run(folder, learner=LEARNER)))


def check_request(given: tuple[str, bytes, str], home: Path) -> None:
    """A request is answered in JSON, by less than 500; the next good one is answered."""
    path, body, kind = given
    answer = client().http.post(f"/v1/{path}", content=body, headers={"content-type": kind})
    assert answer.status_code < 500, answer.text
    if kind != "application/x-ndjson":
        answer.json()
    assert not client().app.problem
    if answer.status_code != 200:
        status, _ = client().predict({"age": 30, "job": "nurse", "sex": "f"})
        assert status == 200
        raise FairSAOMLError(answer.text)


class Kind(NamedTuple):
    """What is spoiled how, and what must hold of it."""

    inputs: Callable[[], st.SearchStrategy]
    check: Callable[[Any, Path], None]


KINDS: dict[str, Kind] = {
    "table": Kind(tables, check_table),
    "settings": Kind(settings, check_settings),
    "encoder": Kind(lambda: spoiled(ENCODER), check_encoder),
    "spec": Kind(lambda: spoiled_runs("spec.json"), check_run),
    "manifest": Kind(lambda: spoiled_runs("checkpoint/"), check_run),
    "checkpoint": Kind(lambda: spoiled_runs(".safetensors"), check_run),
    "journal": Kind(lambda: spoiled_runs("rounds.jsonl"), check_journal),
    "data": Kind(lambda: spoiled_runs("t.csv"), check_run),
    "http": Kind(requests, check_request),
}


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise TimeoutError where something hangs."""

    def ring(number: int, frame: Any) -> None:
        raise TimeoutError(f"it took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def attack(kind: str, inputs: int, seed: int = 0) -> Counter[str]:
    """Run so many inputs of a kind; return how they ended. What is found is raised, shrunk."""
    ended: Counter[str] = Counter()
    made, check = KINDS[kind]
    where = MEMORY if MEMORY.is_dir() else None
    with TemporaryDirectory(dir=where) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=inputs,
            database=None,
            deadline=None,
            derandomize=False,
            suppress_health_check=list(hypothesis.HealthCheck),
            phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
        )
        @hypothesis.given(made())
        def every(given: Any) -> None:
            with at_most(SLOW):
                try:
                    check(given, Path(folder))
                    ended["taken"] += 1
                except FairSAOMLError:
                    ended["refused"] += 1

        every()
    return ended


def main() -> None:
    """Attack every kind, print counts, exit 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=2_300, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS, action="append")
    asked = parser.parse_args()
    found, total = 0, 0
    for kind in asked.kind or KINDS:
        begun = time.monotonic()
        try:
            ended = attack(kind, asked.inputs, asked.seed)
        except Exception as problem:  # what was found, with the smallest input that shows it
            found += 1
            print(f"{kind}: FOUND")
            import traceback

            traceback.print_exception(problem, limit=-6)
            continue
        total += sum(ended.values())
        counts = ", ".join(f"{ended[how]:,} {how}" for how in ("taken", "refused"))
        seconds = time.monotonic() - begun
        print(f"{kind}: {sum(ended.values()):,} inputs, {counts}, {seconds:.0f} s", flush=True)
    print(f"{total:,} inputs; {found} kinds with a finding")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
