"""Do the bounds hold, and how tight are they? Regret and violation measured against tau and T.

All learners on a stream that meets the assumptions of Theorem 1 as far as possible. Met: the model
is linear, rows are bounded, parameters live in a ball, so that f_t is convex, Lipschitz and smooth,
and strongly convex over the ball, since each round has sixteen times as many rows as parameters.
Each round has as many positives as negatives, so that the loss that is learned (balanced) and the
loss that is scored (over all rows) are the same function. g_t is the gap of logits: convex and
Lipschitz. Not met, and impossible with any linear score: g_t is strongly convex in the theorem;
|a . theta| is not, nor is it smooth where it is zero. Also, the theorem is about theta after
adaptation and about exact gradients; here zero-shot scores are measured, and learners with a query
learn from halves of the round's rows.

The stream changes its direction at random times; a direction stays for 8 to 512 rounds. A run of T
rounds is the beginning of the longest one, so that comparators are shared.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsaoml.core.keys import run_keys
from fairsaoml.core.problem import make_problem
from fairsaoml.core.types import Attribute, Schema, Task
from fairsaoml.evaluate.regret.comparator import Comparators, best_models
from fairsaoml.evaluate.regret.regret import doubling, largest_regret, proven_growth, worst
from fairsaoml.evaluate.regret.rounds import linear_rounds, window_sums
from fairsaoml.files import read_json, tidy, write_json
from fairsaoml.learners import registry
from fairsaoml.streams.stream import Stream

__all__ = ["LENGTHS", "PRINTED", "Slope", "bounds_table", "fit", "measure_bounds", "theory_stream"]

LENGTHS = (64, 128, 256, 512, 1024, 2048)
SEEDS = tuple(range(10))
ROWS = 64  # half of each class
STAYS = (8, 512)  # rounds between changes, log-uniform
SIGNAL, MARK, NOISE = 0.8, 0.5, 0.35  # between classes, between groups, within each
LONGEST_ROW = 1.0
RADIUS = 4.0  # S
GRADIENT = 1.5  # G: no gradient of f or g is longer, for rows of length 1 and a bias
CONVEXITY = 0.1  # H of FairGLC: a scale; the true modulus at the edge of the ball is smaller
TOLERANCE = 0.05
FIXED_WINDOW = 32  # tau of the growth in T
STRIDE = 16  # windows of tau rounds begin every tau / STRIDE rounds, where tau is larger
SHORTEST = 2  # windows of one round are all noise: growth in tau is fitted from here
CONFIDENCE = 0.95
SCHEMA_VERSION = 1
# The step sizes of each learner's own analysis, from S, G and H; other learners as they are.
OWN: dict[str, dict[str, float]] = {
    "fairsaoml": {
        "inner_primal_step": RADIUS / GRADIENT,
        "inner_dual_step": RADIUS / GRADIENT,
    },
    "fair-aogd": {"domain_bound": RADIUS, "gradient_bound": GRADIENT},
    "fair-glc": {"convexity": CONVEXITY, "gradient_bound": GRADIENT},
    "aod": {"scale": RADIUS / GRADIENT},
    "cbce": {"scale": RADIUS / GRADIENT},
}
# Learners whose horizon is T. The others get the longest horizon, if any, so that a run of T rounds
# is the beginning of a longer one, and one run serves all T.
KNOW_HORIZON = ("fairsaoml",)

# The paper's table of upper bounds: loss regret, violation. "-": it states none.
PRINTED: dict[str, tuple[str, str]] = {
    "mask-ftml": ("log T", "-"),
    "fair-fml": ("log T", "(T log T)^1/2"),
    "fair-aogd": ("T^2/3", "T^2/3"),
    "fair-glc": ("log T", "(T log T)^1/2"),
    "aod": ("(τ log T)^1/2", "-"),
    "cbce": ("(τ log T)^1/2", "-"),
    "fairsaoml": ("(τ log T)^1/2", "(τ T log T)^1/4; its proof: T^1/4 τ^1/2"),
}

Floats = NDArray[np.float64]
Say = Callable[[str], None]


class Slope(NamedTuple):
    """An exponent of growth and the half-width of its confidence interval."""

    value: float
    half_width: float | None  # None: one seed has no spread
    seeds: int  # those with a slope; the values of the others are not above zero


def measure_bounds(
    *,
    learners: Sequence[str] | None = None,
    lengths: Sequence[int] = LENGTHS,
    seeds: Sequence[int] = SEEDS,
    folder: Path,
    on_progress: Say | None = None,
) -> dict[str, Any]:
    """Run the learners, solve for the comparators and fit the exponents of growth.

    Args:
        learners: their names; None: all that are registered.
        lengths: the horizons T.
        seeds: the seeds.
        folder: each learner's figures at each length are kept here; a second call only reads them.
        on_progress: is called with a line of words for each step.

    Returns:
        Exponents and the values behind them, by learner; and those of the bounds.
    """
    say = on_progress or (lambda words: None)
    names = list(registry.registered() if learners is None else learners)
    folder.mkdir(parents=True, exist_ok=True)
    figures: dict[tuple[str, int], dict[str, Any]] = {}
    best: dict[int, list[_Best]] = {}
    for name in names:
        series: dict[int, tuple[Floats, Floats]] = {}
        for length in lengths:
            file = folder / f"{name}-{length}.json"
            horizon = length if name in KNOW_HORIZON else max(lengths)
            spec = _spec(name, length, horizon, seeds)
            if file.exists() and (kept := read_json(file))["spec"] == spec:
                figures[name, length] = kept
                continue
            if not best:
                say(f"solving for the best models of windows up to {max(lengths)} rounds")
                best = _comparators(max(lengths), seeds)
            if horizon not in series:
                say(f"{name}, {horizon} rounds, {len(seeds)} seeds")
                series[horizon] = _run(name, horizon, seeds)
            loss, violation = (values[:, :length] for values in series[horizon])
            write_json(file, {"spec": spec, **_figures(loss, violation, best, length)})
            figures[name, length] = read_json(file)
    return {
        "schema": SCHEMA_VERSION,
        "lengths": list(lengths),
        "seeds": list(seeds),
        "fixed_window": min(FIXED_WINDOW, min(lengths)),
        "stream": {"rows": ROWS, "stays": list(STAYS), "radius": RADIUS, "tolerance": TOLERANCE},
        "learners": {name: _growth(figures, name, lengths) for name in names},
        "bounds": _bounds(lengths),
    }


def theory_stream(length: int) -> Stream:
    """Return rounds of 64 bounded rows, half of them positive, whose direction changes at times.

    >>> task = next(theory_stream(4).tasks(0))
    >>> task.x.shape, task.y.mean().item(), bool((np.linalg.norm(task.x, axis=1) <= 1.001).all())
    ((64, 3), 0.5, True)
    """
    schema = Schema(
        features=("first", "second", "third"), attributes=(Attribute("group", ("a", "b")),)
    )

    def tasks(seed: int) -> Iterator[Task]:
        random = np.random.default_rng([seed, ROWS])
        left, merit, mark = 0, np.zeros(3), np.zeros(3)
        for _ in range(length):
            if left == 0:
                left = int(np.exp(random.uniform(*np.log(STAYS))))
                merit, other = (v / np.linalg.norm(v) for v in random.normal(size=(2, 3)))
                # The mark leans on merit: to be fair costs accuracy.
                mark = (merit + other) / np.linalg.norm(merit + other)
            left -= 1
            y = np.arange(ROWS) % 2
            group = random.integers(0, 2, ROWS)
            x = np.outer(y - 0.5, SIGNAL * merit) + np.outer(group - 0.5, MARK * mark)
            x += NOISE * random.normal(size=(ROWS, 3))
            norm = np.linalg.norm(x, axis=1, keepdims=True)
            x *= np.minimum(1.0, LONGEST_ROW / norm)
            yield Task(
                x=x.astype(np.float32),
                y=y.astype(np.float32),
                group=group[:, None].astype(np.int32),
            )

    return Stream(name="theory", schema=schema, tasks=tasks, length=length, seeded=True)


class _Best(NamedTuple):
    """One seed's comparators of one window length."""

    fair: Comparators
    free: Comparators


def _settings(name: str, length: int) -> dict[str, Any]:
    """The same problem for all learners; the paper's with the steps of its proof."""
    settings: dict[str, Any] = {
        "model": "logistic",
        "score": "logit",
        "constraints": "dp",
        "tolerance": TOLERANCE,
        "radius": RADIUS,
        "decision": "balanced",
        "horizon": length,
        "meta_iterations": 4,
        "capacity": 2 * ROWS,
        "tasks_kept": 64,
        "support": ROWS // 2,
    }
    offered = registry.entry(name).settings
    known = {key: item.metadata["rule"] for key, item in offered.items()}
    if "query" in known:
        settings |= {"support": ROWS // 4, "query": ROWS // 4}
    settings |= OWN.get(name, {})
    if name == "fairsaoml":
        # eta_1 = eta_2 = O(1 / sqrt T) in the proof. The gradient that is not taken through the
        # base learner compiles in half the time.
        step = RADIUS / (GRADIENT * length**0.5)
        settings |= {
            "meta_primal_step": step,
            "meta_dual_step": step,
            "meta_gradient": "first-order",
        }
    return {
        key: value for key, value in settings.items() if key in known and known[key].holds(value)
    }


def _spec(name: str, length: int, horizon: int, seeds: Sequence[int]) -> dict[str, Any]:
    """All that a figure depends on; kept figures of another spec are measured again."""
    config = registry.configure(name, _settings(name, horizon)).to_dict()
    spec = {
        "learner": name,
        "length": length,
        "seeds": list(seeds),
        "config": config,
        "stream": [ROWS, *STAYS, SIGNAL, MARK, NOISE, LONGEST_ROW, STRIDE],
    }
    return tidy(spec)  # as it reads back from its file


def _scored_problem() -> tuple[Any, dict[str, Any]]:
    """The problem that all learners are scored on, also those without constraints."""
    config = registry.configure("fairsaoml", _settings("fairsaoml", max(LENGTHS)))
    return make_problem(config, theory_stream(1).schema), config.to_dict()


def _run(name: str, length: int, seeds: Sequence[int]) -> tuple[Floats, Floats]:
    """Loss (seed, round) and violation (seed, round) of one learner."""
    import jax

    from fairsaoml.evaluate.compilation import use_cache
    from fairsaoml.evaluate.prequential import all_rounds, run_rounds
    from fairsaoml.evaluate.seeds import first_states, with_room

    use_cache()
    stream = theory_stream(length)
    config = registry.configure(name, _settings(name, length))
    learner = registry.build(name, config, stream.schema)
    problem, _ = _scored_problem()
    passes = zip(*[stream.tasks(seed) for seed in seeds], strict=True)
    batches = all_rounds(list(passes), shared=False)
    keys = run_keys(seeds)
    state = with_room(learner, first_states(learner, seeds), length)
    keep = lambda outcome: (outcome.loss, outcome.violation[0])  # noqa: E731
    program = jax.jit(jax.vmap(partial(run_rounds, learner, problem, keep=keep)))
    loss, violation = jax.device_get(program(keys, state, batches)[1])
    return np.asarray(loss, np.float64), np.asarray(violation, np.float64)


def _comparators(length: int, seeds: Sequence[int]) -> dict[int, list[_Best]]:
    """By window length, the comparators of each seed's longest run."""
    problem, config = _scored_problem()
    solved: dict[int, list[_Best]] = {window: [] for window in doubling(length)}
    for seed in seeds:
        rounds = linear_rounds(list(theory_stream(length).tasks(seed)), problem, config)
        last: _Best | None = None
        for window, known in solved.items():
            starts = np.arange(0, length - window + 1, max(1, window // STRIDE))
            solve = partial(best_models, rounds, window, radius=RADIUS, starts=starts)
            last = _Best(
                fair=solve(fair=True, near=last.fair if last else None),
                free=solve(fair=False, near=last.free if last else None),
            )
            known.append(last)
    return solved


def _figures(
    loss: Floats, violation: Floats, best: Mapping[int, Sequence[_Best]], length: int
) -> dict[str, Any]:
    """Regrets and violation of a run by window and seed: lists (window, seed)."""
    windows = doubling(length)

    def regrets(which: str) -> list[list[float]]:
        return [
            [
                largest_regret(losses, _until(getattr(solved, which), length)).value
                for losses, solved in zip(loss, best[window], strict=True)
            ]
            for window in windows
        ]

    sums = [
        [worst(window_sums(of_seed, window), window).value for of_seed in violation]
        for window in windows
    ]
    gaps = [known.fair.gap.max() for window in windows for known in best[window]]
    return {
        "windows": windows,
        "fair_regret": regrets("fair"),
        "regret": regrets("free"),
        "violation": sums,
        "gap_per_round": float(max(gaps)),
    }


def _until(best: Comparators, rounds: int) -> Comparators:
    """The windows that end within so many rounds."""
    kept = best.start + best.length <= rounds
    by_window = ("start", "point", "loss", "bound", "violation")
    return best._replace(**{name: getattr(best, name)[kept] for name in by_window})


def fit(xs: Sequence[float], values: Sequence[Sequence[float]]) -> Slope | None:
    """Return the exponent a of value ~ x^a: by least squares for each seed, then over seeds.

    `values` is (x, seed). A seed with fewer than three values above zero has no exponent; None if
    most seeds have none.

    >>> fit([1, 2, 4], [[3.0], [6.0], [12.0]])
    Slope(value=1.0, half_width=None, seeds=1)
    >>> fit([1, 2, 4], [[-1.0], [6.0], [12.0]]) is None
    True
    """
    slopes = []
    table = np.asarray(values, np.float64)
    for column in table.T:
        shown = column > 0
        if shown.sum() >= 3:
            logs = np.log(np.asarray(xs, np.float64)[shown])
            slopes.append(float(np.polyfit(logs, np.log(column[shown]), 1)[0]))
    if not slopes or 2 * len(slopes) < table.shape[1]:
        return None
    half = None
    if len(slopes) > 1:
        from scipy.stats import t

        error = np.std(slopes, ddof=1) / len(slopes) ** 0.5
        half = float(t.ppf(0.5 + CONFIDENCE / 2, len(slopes) - 1) * error)
    return Slope(value=round(float(np.mean(slopes)), 6), half_width=half, seeds=len(slopes))


MEASURES = ("fair_regret", "regret", "violation")


def _growth(
    figures: Mapping[tuple[str, int], Mapping[str, Any]], name: str, lengths: Sequence[int]
) -> dict[str, Any]:
    """A learner's exponents and the values behind them."""
    longest = figures[name, max(lengths)]
    fixed = min(FIXED_WINDOW, min(lengths))
    windows = [window for window in longest["windows"] if window >= SHORTEST]
    grown: dict[str, Any] = {}
    for key in MEASURES:
        by_window = [longest[key][longest["windows"].index(window)] for window in windows]
        at_fixed = [
            figures[name, length][key][figures[name, length]["windows"].index(fixed)]
            for length in lengths
        ]
        static = [figures[name, length][key][-1] for length in lengths]
        grown[key] = {
            "in_window": _to_json(fit(windows, by_window)),
            "in_rounds": _to_json(fit(lengths, at_fixed)),
            "static": _to_json(fit(lengths, static)),
            "by_window": [
                [window, *values] for window, values in zip(windows, by_window, strict=True)
            ],
            "by_rounds": [
                [length, *values] for length, values in zip(lengths, at_fixed, strict=True)
            ],
        }
    grown["gap_per_round"] = max(figures[name, length]["gap_per_round"] for length in lengths)
    return grown


def _to_json(slope: Slope | None) -> dict[str, Any] | None:
    return None if slope is None else slope._asdict()


def _bounds(lengths: Sequence[int]) -> dict[str, Any]:
    """The same exponents of the proven growth itself: logarithms bend it a little."""
    longest, fixed = max(lengths), min(FIXED_WINDOW, min(lengths))
    windows = [window for window in doubling(longest) if window >= SHORTEST]
    bounds = {}
    for key in ("loss", "violation", "violation_of_proof"):
        tau = fit(windows, [[proven_growth(longest, w)[key]] for w in windows])
        total = fit(lengths, [[proven_growth(n, fixed)[key]] for n in lengths])
        bounds[key] = {"in_window": _to_json(tau), "in_rounds": _to_json(total)}
    return bounds


NOTES = """\
Exponents a of growth like τ^a (T = {longest}, τ from {shortest} to {longest}) and like T^a (T from
{least} to {longest}, τ = {fixed}; static: τ = T), fitted in log-log for each of {seeds} seeds: the
mean and the half-width of its {confidence:.0%} confidence interval over seeds. Regret is FairSAR:
against the best fair model of the worst window. Values at or below zero have no logarithm and are
left out of a fit, so that an exponent is about the windows in which there is something to regret;
"≤ 0": fewer than three such values for most seeds. The last two rows are the theorem's bounds,
fitted the same way. A bound has an unknown constant and a fit has a range: an exponent not above
theirs agrees with them; one above does not, over these T, but refutes nothing.
Comparators are solved to a duality gap of {gap:.0e} per round."""


def bounds_table(data: Mapping[str, Any]) -> str:
    """Return the paper's table of upper bounds with the measured exponents, as Markdown."""
    head = ["learner", "loss regret, proven", "measured in τ", "in T", "static, in T"]
    head += ["violation, proven", "measured in τ", "in T"]
    rows = [head, ["---"] * len(head)]
    for name, grown in data["learners"].items():
        loss, violation = PRINTED.get(name, ("-", "-"))
        regret, sums = grown["fair_regret"], grown["violation"]
        row = [name, _order(loss)]
        row += [_exponent(regret[key]) for key in ("in_window", "in_rounds", "static")]
        row += [_order(violation), *(_exponent(sums[key]) for key in ("in_window", "in_rounds"))]
        rows.append(row)
    bounds = data["bounds"]
    for title, key in (("as printed", "violation"), ("as its proof yields", "violation_of_proof")):
        row = [f"*Theorem 1, {title}*", ""]
        row += [_exponent(bounds["loss"][by]) for by in ("in_window", "in_rounds")]
        row += ["", "", *(_exponent(bounds[key][by]) for by in ("in_window", "in_rounds"))]
        rows.append(row)
    notes = NOTES.format(
        longest=max(data["lengths"]),
        shortest=SHORTEST,
        least=min(data["lengths"]),
        fixed=data["fixed_window"],
        seeds=len(data["seeds"]),
        confidence=CONFIDENCE,
        gap=max(grown["gap_per_round"] for grown in data["learners"].values()),
    )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + f"\n\n{notes}\n"


def _order(bound: str) -> str:
    if bound == "-":
        return bound
    return "; its proof: ".join(f"O({part})" for part in bound.split("; its proof: "))


def _exponent(slope: Mapping[str, Any] | None) -> str:
    if slope is None:
        return "≤ 0"
    half = slope["half_width"]
    return f"{slope['value']:.2f}" + (f" ± {half:.2f}" if half is not None else "")
