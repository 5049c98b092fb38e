"""The best fixed model of every window, in hindsight: what regret is measured against.

On window [s, e], for the linear model and gaps of logits,

    min_theta  sum_t f_t(theta)   s.t.  sum_t g_ti(theta) <= 0 for every i,   |theta| <= radius,

or, with `Rounds.every_round`, g_ti(theta) <= 0 for every t and i: the paper's Theta;

f_t the mean logistic loss over all rows of round t, g_ti = |a_ti . theta| - tolerance. This is a
convex program, and it is solved as one: proximal Newton steps whose quadratic programs hold the
constraints exactly (`quadratic`), all windows of a length together. Every answer carries a proof:
a feasible point of the dual program, so that `loss - bound` is a duality gap, by weak duality and
whatever the solver did.

Both f_t and g_t are those of the journal: scores are as deployed, with the log-odds of the class
prior before the round added (D25), so that a learner that is this model has regret 0.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, expit

from fairsaoml.evaluate.regret.quadratic import Limits, Solution, minimise, times
from fairsaoml.evaluate.regret.rounds import Floats, Ints, Rounds

TOLERANCE = 1e-5  # duality gap per round that is asked for
FAR = 1e3  # without a ball, proofs hold for all models of at most this norm
MOST_STEPS = 40
PATIENCE = 3  # steps with borrowed Hessians, before a window gets its own
MOST_ATTEMPTS = 4
PROMISE = 4  # a step that promises less than this share of the gap is not made
OVERSHOT = 0.5  # of the first slope: a step that ends steeper uphill is shortened
FEW_ROWS = 20  # per parameter, below which a window's fit can be extreme: its own Hessian
BLOCK = 32  # windows that share a pass over their rows
CHUNK = 2048  # rows of a pass that are in the processor's cache together
MEMORY = 4_000_000  # numbers in the constraint terms of windows solved together

Bools = NDArray[np.bool_]


class Comparators(NamedTuple):
    """The best models of some windows of one length. Rounds count from 0 here."""

    start: Ints  # (window,): first round
    length: int
    point: Floats  # (window, parameter)
    loss: Floats  # (window,): sum over the window
    bound: Floats  # (window,): no model within the limits has less
    violation: Floats  # (window, constraint): sum over the window

    @property
    def gap(self) -> Floats:
        """How far from the best a model may be, at most, per round: (window,)."""
        return (self.loss - self.bound) / self.length


def best_models(
    rounds: Rounds,
    length: int,
    *,
    radius: float | None,
    fair: bool,
    near: Comparators | None = None,
    starts: Ints | None = None,
    tolerance: float = TOLERANCE,
) -> Comparators:
    """The best model of every window of a length (or of those that begin at `starts`).

    `near` are the best models of shorter windows, to begin with; they change the time this takes,
    and the answer by no more than the gap. `fair=False` leaves the constraints out.

    >>> x = np.array([[1.0], [1.0], [1.0], [1.0]])  # one parameter, the bias: three ones of four
    >>> y, ones, first = np.array([1.0, 1.0, 1.0, 0.0]), np.ones(4), np.array([0, 4])
    >>> rounds = Rounds(x, y, 0 * ones, ones / 4, first, np.zeros((1, 0, 1)), np.zeros((1, 0)))
    >>> best = best_models(rounds, 1, radius=None, fair=False, tolerance=1e-10)
    >>> best.point.round(4).tolist()  # log 3
    [[1.0986]]
    """
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    starts = np.arange(rounds.number - length + 1) if starts is None else starts
    if not fair:
        rounds = rounds._replace(terms=rounds.terms[:, :0], allowed=rounds.allowed[:, :0])
    windows = _Windows(rounds, starts, length)
    guess = windows.guess(near, radius)
    numbers = length * rounds.terms.shape[1] * rounds.x.shape[1]
    threads = os.cpu_count() or 1
    size = max(1, min(MEMORY // max(numbers, 1), -(-len(starts) // threads)))
    # Thousands of small products: threads inside each would only get in each other's way.
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        windows = _with_curvature(windows, guess)

        def part(at: int) -> tuple[Floats, ...]:
            some = slice(at, at + size)
            return _solved(windows.some(some), guess[some], radius, tolerance)

        parts = list(pool.map(part, range(0, len(starts), size)))
    joined = [np.concatenate(values) for values in zip(*parts, strict=True)]
    return Comparators(starts, length, *joined)


class _Windows(NamedTuple):
    """Windows of one length over the rounds of a run."""

    rounds: Rounds
    start: Ints  # (window,): first round
    length: int
    # A curvature for every row, and its sums, from which any window's Hessian is a difference.
    curvature: Floats = np.empty(0)  # (row,)
    sums: Floats = np.empty(0)  # (round + 1, parameter, parameter)

    def some(self, which: Any) -> "_Windows":
        """Return some of the windows."""
        return self._replace(start=self.start[which])

    def limits(self, radius: float | None) -> Limits:
        """What the windows' models must keep."""
        kept = (self.rounds.limits(start, self.length) for start in self.start)
        terms, most = map(np.stack, zip(*kept, strict=True))
        return Limits(terms, most, radius)

    def blocks(self) -> Iterator[tuple[slice, slice, Floats | float]]:
        """Windows, rows, and which of the rows are inside which window: passes over the data.

        Windows that begin near each other share the passes over the rows of all of them.
        """
        first, block = self.rounds.first, int(np.clip(self.length // 2, 4, BLOCK))
        for at in range(0, len(self.start), block):
            windows = slice(at, min(at + block, len(self.start)))
            low, high = first[self.start[windows]], first[self.start[windows] + self.length]
            end = int(high.max())
            for begin in range(int(low.min()), end, CHUNK):
                rows = slice(begin, min(begin + CHUNK, end))
                if rows.start >= low.max() and rows.stop <= high.min():
                    yield windows, rows, 1.0
                else:
                    place = np.arange(rows.start, rows.stop)[:, None]
                    yield windows, rows, ((place >= low) & (place < high)).astype(np.float64)

    def gradients(self, points: Floats) -> Floats:
        """Gradient of each window's summed loss at its own point: (window, parameter)."""
        rounds, gradient = self.rounds, np.zeros_like(points)
        for windows, rows, inside in self.blocks():
            x = rounds.x[rows]
            error = expit(x @ points[windows].T + rounds.offset[rows, None])
            error -= rounds.y[rows, None]
            error *= rounds.weight[rows, None] * inside
            gradient[windows] += error.T @ x
        return gradient

    def hessian(self, window: int, point: Floats) -> Floats:
        """Hessian of one window's summed loss at a point."""
        rounds, start = self.rounds, self.start[window]
        rows = slice(rounds.first[start], rounds.first[start + self.length])
        x = rounds.x[rows]
        chance = expit(x @ point + rounds.offset[rows])
        return x.T @ ((rounds.weight[rows] * chance * (1 - chance))[:, None] * x)

    def guess(self, near: Comparators | None, radius: float | None) -> Floats:
        """Where to begin: between the best models of the shorter windows at both ends, in limits.

        Zero keeps every limit, and limits are convex: a point outside is drawn towards zero.
        """
        if near is None:
            return np.zeros((len(self.start), self.rounds.x.shape[1]))
        last = len(near.start) - 1
        end = self.start + max(self.length - near.length, 0)
        left, right = (np.searchsorted(near.start, at).clip(0, last) for at in (self.start, end))
        points = (near.point[left] + near.point[right]) / 2
        for w, start in enumerate(self.start):
            terms, most = self.rounds.limits(start, self.length)
            reach = np.abs(terms @ points[w]).sum(axis=0)
            over = np.max(reach / np.maximum(most, np.finfo(float).tiny), initial=1.0)
            points[w] /= over
        if radius is not None:
            norm = np.linalg.norm(points, axis=1)
            points *= np.minimum(1.0, radius / np.maximum(norm, radius))[:, None]
        return points


def _with_curvature(windows: _Windows, points: Floats) -> _Windows:
    """Take each round's Hessian at the mean of the points of the windows that hold it."""
    rounds, size = windows.rounds, windows.rounds.x.shape[1]
    total, held = np.zeros((rounds.number + 1, size)), np.zeros(rounds.number + 1)
    for edge, sign in ((windows.start, 1.0), (windows.start + windows.length, -1.0)):
        np.add.at(total, edge, sign * points)
        np.add.at(held, edge, sign)
    mean = np.cumsum(total, axis=0) / np.maximum(np.cumsum(held), 1.0)[:, None]
    curvature = np.empty(len(rounds.y))
    sums = np.zeros((rounds.number + 1, size, size))
    for t in range(rounds.number):
        rows = slice(rounds.first[t], rounds.first[t + 1])
        score = rounds.x[rows] @ mean[t] + rounds.offset[rows]
        curvature[rows] = rounds.weight[rows] * _steady_curvature(score)
        sums[t + 1] = sums[t] + rounds.x[rows].T @ (curvature[rows, None] * rounds.x[rows])
    return windows._replace(curvature=curvature, sums=sums)


def _solved(
    windows: _Windows, points: Floats, radius: float | None, tolerance: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Point, loss, bound and violation of some windows of one length."""
    rounds, starts, length, *_ = windows
    limits = windows.limits(radius)
    rows = rounds.first[starts + length] - rounds.first[starts]
    own = rows < FEW_ROWS * rounds.x.shape[1]
    goal = tolerance * length
    points = np.where(own[:, None], 0.0, points)  # Newton's own way is shortest from zero
    loss, bound = np.empty(len(starts)), np.full(len(starts), -np.inf)
    todo = np.arange(len(starts))
    for _ in range(MOST_ATTEMPTS):
        some, few = windows.some(todo), limits.some(todo)
        points[todo], model, exact = _descend(some, points[todo], few, own[todo], goal)
        loss[todo], proof = _certify(some, points[todo], model, few, exact)
        bound[todo] = np.maximum(bound[todo], proof)
        todo = todo[loss[todo] - bound[todo] > tolerance * length]
        if not len(todo):
            break
        own[todo], goal = True, goal / 10
    reach = np.abs(np.einsum("wtcp,wp->wtc", limits.terms, points)).sum(axis=1)
    return points, loss, bound, reach - limits.most


def _descend(
    windows: _Windows, points: Floats, limits: Limits, own: Bools, goal: float
) -> tuple[Floats, Solution, Bools]:
    """Proximal Newton steps until the next promises much less than `goal`: that step, too.

    Also returned: which windows came to need a Hessian of their own.
    """
    own = own.copy()
    points, gradient = points.copy(), windows.gradients(points)
    starts = windows.start
    hessian = windows.sums[starts + windows.length] - windows.sums[starts]
    model = Solution.unbound(points, limits)
    active = np.arange(len(points))
    for step in range(MOST_STEPS):
        own[active] |= step >= PATIENCE
        for w in active[own[active]]:
            hessian[w] = windows.hessian(w, points[w])
        here, slope, curve = points[active], gradient[active], hessian[active]
        best = minimise(curve, slope - times(curve, here), limits.some(active), goal / 20)
        model.put(active, best)
        move = best.point - here
        descent = (slope * move).sum(axis=1)
        promise = -descent - 0.5 * (move * times(curve, move)).sum(axis=1)
        going = promise > goal / PROMISE
        active, here, move, descent = active[going], here[going], move[going], descent[going]
        if not len(active):
            break
        points[active] = here + move
        gradient[active] = windows.some(active).gradients(points[active])
        for _ in range(MOST_STEPS):
            # By convexity the loss has not risen where it ends downhill, or uphill but gently.
            end = (gradient[active] * move).sum(axis=1)
            long = end > OVERSHOT * np.abs(descent)
            if not long.any():
                break
            again, share = active[long], descent[long] / (descent[long] - end[long])
            move[long] *= share[:, None]
            descent[long] *= share
            points[again] = here[long] + move[long]
            gradient[again] = windows.some(again).gradients(points[again])
    return points, model, own


def _certify(
    windows: _Windows, points: Floats, model: Solution, limits: Limits, own: Bools
) -> tuple[Floats, Floats]:
    """Loss of each window's point, and a lower bound on the loss of any model within the limits.

    softplus(z) = max_p p z + entropy(p), so that for any p in [0, 1], any |nu_ti| <= lambda_i and
    any theta within the limits

        f(theta) >= sum_r w_r ((p_r - y_r) o_r + entropy(p_r)) - sum_i lambda_i c_i - R |v|,

    v = sum_r w_r (p_r - y_r) x_r + sum_ti nu_ti a_ti. Without a ball v must vanish: p is the
    point's own chance after the quadratic model's last step, for which it does.
    """
    pulled = np.einsum("wtc,wtcp->wp", model.signed, limits.terms)
    price = np.abs(model.signed).max(axis=1, initial=0.0)
    rounds, (loss, bound), rest = windows.rounds, np.zeros((2, len(points))), pulled.copy()
    for some, rows, inside in windows.blocks():
        x, y, offset = rounds.x[rows], rounds.y[rows, None], rounds.offset[rows, None]
        weight = rounds.weight[rows, None] * inside
        score = x @ points[some].T + offset
        chance = expit(score)
        loss[some] += (weight * (np.logaddexp(0.0, score) - y * score)).sum(axis=0)
        curvature = np.where(
            own[some],
            chance * (1 - chance),
            (windows.curvature[rows] / rounds.weight[rows])[:, None],
        )
        chance = np.clip(chance + curvature * (x @ (model.point[some] - points[some]).T), 0.0, 1.0)
        bound[some] += (weight * ((chance - y) * offset + entr(chance) + entr(1 - chance))).sum(
            axis=0
        )
        rest[some] += (weight * (chance - y)).T @ x
    radius = FAR if limits.radius is None else limits.radius
    return loss, bound - (price * limits.most).sum(axis=1) - radius * np.linalg.norm(rest, axis=1)


def _steady_curvature(score: Floats) -> Floats:
    """sigmoid's slope, but at least half of tanh(z/2) / 2z.

    That is the curvature of the parabola over softplus that touches it at z and -z (Jaakkola and
    Jordan 2000). It falls with 1/|z| where the slope falls exponentially: a step that is good
    enough, too, for windows in which the row's score is not this one.
    """
    size = np.maximum(np.abs(score), 1e-6)
    chance = expit(score)
    return np.maximum(chance * (1 - chance), np.tanh(size / 2) / (4 * size))
