"""The peer: a steady round of `fairsaoml` as PyTorch does it fastest.

Written from the formulas, for speed: experts are an axis of every product, whatever of losses and
gaps does not depend on theta is computed once for all draws of a round, a draw's rows are gathered
once, samples are kept in place, and an iteration is a pure function of tensors that `torch.compile`
takes whole. Left out, in the peer's favour: warnings, the check that all numbers are finite, rounds
without rows. One protected attribute of two levels, default settings.

`python -m benchmarks.torch_round --profile` prints where its time goes.
"""

import argparse
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import torch
import torch._inductor
from torch import Tensor
from torch.func import grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.functional import softplus
from torch.profiler import ProfilerActivity, profile
from torch.utils._pytree import tree_flatten, tree_map, tree_structure, tree_unflatten

from benchmarks import workload
from benchmarks.workload import Game
from fairsaoml.core import experts

__all__ = ["STYLES", "TorchRound", "draws_of", "largest_difference", "tensors"]

STYLES = ("vmap", "batched", "compiled")

PROFILED = 10  # rounds
EMPTY = 2.0  # the priority of a slot that holds no row
HEDGE_SCALE = 3.0
GOLDEN = 2654435769  # 2^32 times the golden section, by which windows of rows start
LABELS = {"dp": (None,), "eo": (1, 0)}  # what a notion's constraints condition on

Params = tuple[Tensor, ...]  # weight, bias, weight, bias, ...


class Samples(NamedTuple):
    """Every level's sample: (level, class, slot, ...)."""

    x: Tensor
    group: Tensor
    priority: Tensor


class Draws(NamedTuple):
    """The samples with this round's rows, and the order they are drawn in."""

    samples: Samples
    slots: Tensor  # (level, class, slot)
    held: Tensor  # (level, class)


class Rows(NamedTuple):
    """Draws of rows: which they are, and what each counts for."""

    index: Tensor  # (..., level, row): in the samples, laid flat
    side: Tensor  # (..., level, row): -1 where the label is 1, else 1
    loss: Tensor  # (..., level, row): in the balanced loss
    gap: Tensor  # (..., level, constraint, row): in the gap between groups
    known: Tensor  # (..., level, constraint)


class Expert(NamedTuple):
    """Experts' pairs, (level, ...), or the meta pair."""

    primal: Params
    dual: Tensor


class State(NamedTuple):
    """What the next round needs."""

    meta: Expert
    experts: Expert
    regret: Tensor
    abs_regret: Tensor
    samples: Samples
    rates: Tensor  # the discounted sums of the prior
    tasks: Tensor


class Drawn(NamedTuple):
    """One draw: features (level, row, feature), and what each row counts for."""

    x: Tensor
    rows: Rows


class Bilevel(NamedTuple):
    """One iteration's draws, and what sleepers violate."""

    support: Drawn  # of the awake
    query: Drawn  # of the awake
    pushing: tuple[Drawn, ...]  # a query of the sleepers that have weight, where they push theta
    asleep: Tensor  # (asleep level, constraint)


class Terms(NamedTuple):
    """What a round's iterations share."""

    weights: Tensor
    shift: Tensor
    roots: Tensor  # (awake level,): roots of interval lengths, that inner steps fall with
    duals: Tensor  # of the asleep
    pushing: tuple[Tensor, ...]  # weights and duals of the sleepers that push theta


class Deployed(NamedTuple):
    """The share of positives, and logit minus threshold."""

    rate: Tensor
    shift: Tensor


def logits(primal: Params, x: Tensor) -> Tensor:
    """ReLU layers and a score, for one expert or for all at once."""
    *hidden, weight, bias = primal
    for w, b in zip(hidden[::2], hidden[1::2], strict=True):
        x = torch.relu(x @ w + b.unsqueeze(-2))
    return (x @ weight + bias.unsqueeze(-2)).squeeze(-1)


def balanced_loss(z: Tensor, rows: Rows) -> Tensor:
    """The mean of the class means."""
    return (rows.loss * softplus(rows.side * z)).sum(-1)


def measured(
    z: Tensor, dual: Tensor, rows: Rows, shift: Tensor, tolerance: float
) -> tuple[Tensor, Tensor]:
    """F = f + lambda . g of scores, and g."""
    gap = (rows.gap * torch.sigmoid(z + shift).unsqueeze(-2)).sum(-1)
    violation = torch.where(rows.known, gap.abs() - tolerance, 0.0)
    return balanced_loss(z, rows) + (dual * violation).sum(-1), violation


def move(primal: Params, slope: Params, step: Tensor | float) -> Params:
    """theta - step * gradient; a tensor is a step per expert."""

    def fitting(d: Tensor) -> Tensor | float:
        return step if isinstance(step, float) else step.view(-1, *[1] * (d.dim() - 1))

    return tuple(value - fitting(d) * d for value, d in zip(primal, slope, strict=True))


def shortened(slope: Params, bound: float | None, axes: int = 0) -> Params:
    """A gradient no longer than `bound`; the first `axes` axes are gradients of their own."""
    if bound is None:
        return slope
    squares = sum(leaf.flatten(axes).square().sum(-1) for leaf in slope)
    shrink = (bound / squares.clamp(min=torch.finfo(torch.float32).tiny).sqrt()).clamp(max=1.0)
    return tuple(leaf * shrink.view(*shrink.shape, *[1] * (leaf.dim() - axes)) for leaf in slope)


def joined(lower: Expert, upper: Expert) -> Expert:
    """Two runs of levels as one."""
    primal = tuple(map(torch.cat, zip(lower.primal, upper.primal, strict=True)))
    return Expert(primal, torch.cat([lower.dual, upper.dual]))


def some(values: Any, take: Callable[[Tensor], Tensor]) -> Any:
    """A part of every tensor of a tuple of tensors."""
    return tree_map(take, values)


class Compiled:
    """A function of tensors, traced to one flat graph per shape and compiled by inductor.

    Calls go straight to the compiled graph: `torch.compile` would check its guards each time.
    """

    def __init__(self, function: Callable) -> None:
        self.function = function
        self.programs: dict[Any, tuple[Callable, Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        leaves = laid_flat(arguments, [])
        # How many experts are awake decides all shapes, and the first axes tell it.
        called = tuple(leaf.shape[:1] for leaf in leaves)
        if called not in self.programs:
            self.programs[called] = self.compiled(arguments, leaves)
        program, built = self.programs[called]
        return tree_unflatten(program(*leaves), built)

    def compiled(self, arguments: tuple, leaves: list[Tensor]) -> tuple[Callable, Any]:
        """The compiled graph, and what its flat results are put together to."""
        given, built = tree_structure(arguments), []

        def flat(*leaves: Tensor) -> list[Tensor]:
            results, structure = tree_flatten(self.function(*tree_unflatten(leaves, given)))
            built.append(structure)
            return results

        graph = make_fx(flat)(*leaves)
        return torch._inductor.compile(graph, leaves), built[0]


def laid_flat(value: Any, leaves: list[Tensor]) -> list[Tensor]:
    """The tensors of nested tuples; a tenth of the time that `tree_flatten` takes."""
    for part in value:
        if isinstance(part, Tensor):
            leaves.append(part)
        else:
            laid_flat(part, leaves)
    return leaves


class TorchRound:
    """A game's round in PyTorch, from the game's present state; each call plays and moves on."""

    def __init__(self, game: Game, style: str = "batched") -> None:
        self.config, self.size = game.config, game.size
        self.labels = LABELS[game.config.constraints]
        self.vmapped = style == "vmap"
        self.state = tensors(game)
        self.batches = {
            round: some(tuple(game.batches[round - 1])[:4], tensor)
            for round in (game.size.typical, game.size.crowded)
        }
        self.iterate: Callable = self.iteration
        self.judge: Callable = self.credit
        self.look: Callable = self.sleeping
        if style == "compiled":
            self.judge, self.look = Compiled(self.judge), Compiled(self.look)
            if getattr(game.config, "meta_gradient", "") == "exact":
                for name in ("points", "through", "meta_step"):
                    setattr(self, name, Compiled(getattr(self, name)))
            else:
                self.iterate = Compiled(self.iterate)

    def play(self, round: int, given: Draws | None = None) -> None:
        """A round; draws may be given, so that the numbers can be compared."""
        with torch.no_grad():
            self.state = self.meta_round(round, given)

    def awake(self, round: int) -> int:
        """How many levels start at a round: a prefix."""
        return sum((round - 1) % 2**level == 0 for level in range(self.size.levels))

    def observe(self, y: Tensor) -> tuple[Tensor, Tensor, Deployed]:
        """The class prior with this round's labels."""
        discount = self.config.prior_discount
        rates, tasks = discount * self.state.rates + y.mean(), discount * self.state.tasks + 1
        rate = (rates / tasks).clamp(1e-3, 1 - 1e-3)
        return rates, tasks, Deployed(rate, torch.logit(rate))

    def draw(self, batch: tuple[Tensor, ...], awake: int) -> Draws:
        """This round's rows into the samples, in place, and a fresh order of all rows held."""
        x, y, group, _ = batch
        old = self.state.samples
        levels, classes, slots = old.priority.shape
        old.priority[:awake] = EMPTY
        arrived = torch.where(y == torch.arange(classes)[:, None], torch.rand(len(y)), EMPTY)
        both = torch.cat([old.priority, arrived.expand(levels, -1, -1)], dim=2)
        kept = torch.zeros_like(both, dtype=torch.bool)
        kept.scatter_(2, both.topk(slots, dim=2, largest=False, sorted=False).indices, True)
        # As many slots are left as rows come in, level by level and class by class.
        left = (~kept[..., :slots]).flatten().nonzero()[:, 0]
        _, label, row = kept[..., slots:].nonzero().T
        old.x.view(-1, x.shape[1])[left] = x[row]
        old.group.view(-1)[left] = group[row, 0]
        old.priority.view(-1)[left] = arrived[label, row]
        held = old.priority < EMPTY
        order = torch.where(held, torch.rand(held.shape), EMPTY).argsort(dim=2)
        return Draws(old, order, held.sum(2))

    def rows(self, draws: Draws, deployed: Deployed, query: bool, times: int) -> Rows:
        """All draws of a round of one sort, (iteration, level, ...): windows of its own rows."""
        support, held = self.config.support, draws.held
        supported = -(-held * support // (support + self.config.query))
        slots = draws.slots.shape[2]
        room = -(-slots * support // (support + self.config.query))  # of all that may be held
        if query:
            size, first, pool = self.config.query, supported, held - supported
            room = slots - room
        else:
            size, first, pool = support, torch.zeros_like(held), supported
        size = min(size, -(-room // 2))  # a draw takes at most half of its rows
        turns = (torch.arange(times) * GOLDEN % 2**32).float() / 2.0**32
        start = (turns[:, None, None] * pool.float()).long()
        places = torch.arange(size)
        place = (start[..., None] + places) % pool.clamp(min=1)[..., None] + first[..., None]
        levels, classes, _ = draws.samples.priority.shape
        slot = draws.slots.expand(times, -1, -1, -1).gather(3, place % slots)
        index = slot + slots * torch.arange(levels * classes).view(levels, classes, 1)
        group = draws.samples.group.view(-1)[index]
        filled = torch.minimum(-(-pool // 2), torch.full_like(pool, size))
        weight = (places < filled[..., None]).expand(index.shape).float()
        y = torch.arange(2.0)[:, None].expand(index.shape)
        return self.counted(
            *(leaf.flatten(2) for leaf in (index, y, group, weight)), deployed=deployed
        )

    def counted(
        self, index: Tensor, y: Tensor, group: Tensor, weight: Tensor, deployed: Deployed
    ) -> Rows:
        """What rows count for; class means, prior restored, group means."""

        def share(part: Tensor) -> Tensor:
            return part / part.sum(-1, keepdim=True).clamp(min=1e-30)

        zero, one = share(weight * (1 - y)), share(weight * y)
        classes = (zero.sum(-1, keepdim=True) > 0).float() + (one.sum(-1, keepdim=True) > 0)
        restored = (1 - deployed.rate) * zero + deployed.rate * one
        here = torch.stack([torch.ones_like(y) if k is None else y == k for k in self.labels], -2)
        spoken = restored.unsqueeze(-2) * here
        second, first = spoken * group.unsqueeze(-2), spoken * (1 - group.unsqueeze(-2))
        known = (second.sum(-1) > 0) & (first.sum(-1) > 0)
        gap = torch.where(known[..., None], share(second) - share(first), 0.0)
        return Rows(index, 1 - 2 * y, (zero + one) / classes, gap, known)

    def gathered(self, rows: Rows) -> Drawn:
        """One draw with its features."""
        features = self.state.samples.x.view(-1, self.size.features)
        x = features.index_select(0, rows.index.flatten()).view(*rows.index.shape, -1)
        return Drawn(x, rows)

    def gradient(self, objective: Callable) -> Callable:
        """Every expert's gradient of its own objective(primal, its tensors), and what is beside."""
        if self.vmapped:
            return vmap(grad(objective, has_aux=True))

        def total(primal: Params, *own: Any) -> tuple[Tensor, Any]:
            values, beside = objective(primal, *own)
            return values.sum(), beside

        return grad(total, has_aux=True)

    # The paper's learner.

    def meta_round(self, round: int, given: Draws | None) -> State:
        state, batch, awake = self.state, self.batches[round], self.awake(round)
        rates, tasks, deployed = self.observe(batch[1])
        experts = joined(spread(state.meta, awake), some(state.experts, lambda leaf: leaf[awake:]))
        weights = ada_normal_hedge(state.regret, state.abs_regret)
        draws = given or self.draw(batch, awake)
        times = self.config.meta_iterations
        supports = self.rows(
            some(draws, lambda leaf: leaf[:awake]), deployed, query=False, times=times
        )
        queries = self.rows(draws, deployed, query=True, times=times + 1)
        meta, asleep = state.meta, some(experts, lambda leaf: leaf[awake:])
        self.state = state._replace(samples=draws.samples)
        of_asleep = some(queries, lambda leaf: leaf[:, awake:])
        violation, scores = self.look(asleep, draws.samples.x[awake:], of_asleep, deployed.shift)
        # Only in the first-order gradient sleepers push theta, and without weight nobody does.
        exact = self.config.meta_gradient == "exact"
        heavy = [] if exact else (weights[awake:] > 0).nonzero()[:, 0].tolist()
        terms = Terms(
            weights,
            deployed.shift,
            torch.arange(awake).exp2().sqrt(),
            asleep.dual,
            (weights[awake:][heavy], asleep.dual[heavy]) if heavy else (),
        )
        of_awake = some(queries, lambda leaf: leaf[:, :awake])
        pushing = each(some(of_asleep, lambda leaf: leaf[:, heavy])) if heavy else []
        for iteration, (support, query) in enumerate(
            zip(each(supports), each(of_awake), strict=False)
        ):
            draw = Bilevel(
                support=self.gathered(support),
                query=self.gathered(query),
                pushing=(self.gathered(next(pushing)),) if heavy else (),
                asleep=violation[iteration],
            )
            meta, adapted = self.iterate(meta, draw, terms)
        last = some(queries, lambda leaf: leaf[-1])
        won = self.judge(meta, adapted, scores, self.gathered(last), deployed.shift)
        return State(
            meta,
            joined(adapted, asleep),
            state.regret + won,
            state.abs_regret + won.abs(),
            draws.samples,
            rates,
            tasks,
        )

    def sleeping(
        self, asleep: Expert, x: Tensor, rows: Rows, shift: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What sleepers violate on each draw, and their scores on the last one.

        They do not move: their rows are scored once.
        """
        z = logits(asleep.primal, x.flatten(1, 2)).flatten()
        # Places are counted over all levels.
        drawn = z[rows.index - (self.size.levels - len(x)) * x.shape[1] * x.shape[2]]
        return measured(drawn, asleep.dual, rows, shift, self.config.tolerance)[1], drawn[-1]

    def iteration(self, meta: Expert, draw: Bilevel, terms: Terms) -> tuple:
        """The awake adapt from the meta pair, then the meta pair moves."""
        adapted, slopes, violation = self.points(meta, draw, terms)
        if self.config.meta_gradient == "exact":
            slopes = self.through(meta, slopes, draw, terms)
        return self.meta_step(meta, adapted, slopes, violation, draw, terms), adapted

    def objective(self, terms: Terms) -> Callable:
        """F of one expert or of all, and the violations."""

        def objective(primal: Params, dual: Tensor, x: Tensor, rows: Rows) -> tuple:
            z = logits(primal, x)
            return measured(z, dual, rows, terms.shift, self.config.tolerance)

        return objective

    def points(self, meta: Expert, draw: Bilevel, terms: Terms) -> tuple:
        """Adapted pairs, and gradients and violations of the awake's query terms there."""
        objective, roots = self.objective(terms), terms.roots
        start = spread(meta, len(roots))
        slope, _ = self.gradient(objective)(start.primal, start.dual, *draw.support)
        slope = shortened(slope, self.config.gradient_bound, axes=1)
        primal = move(start.primal, slope, self.config.inner_primal_step / roots)
        ascent = (
            self.config.inner_dual_step
            / roots[:, None]
            * objective(primal, start.dual, *draw.support)[1]
        )
        adapted = Expert(primal, (start.dual + ascent).relu())

        def weighted(primal: Params, dual: Tensor, x: Tensor, rows: Rows, p: Tensor) -> tuple:
            value, violation = objective(primal, dual, x, rows)
            return p * value, violation

        return adapted, *self.gradient(weighted)(*adapted, *draw.query, terms.weights[: len(roots)])

    def through(self, meta: Expert, slopes: Params, draw: Bilevel, terms: Terms) -> Params:
        """From the adapted theta back to the meta one: v - eta H v, one step of the base learner.

        A function of its own: inductor 2.13 compiles it together with `points` to a kernel that
        crashes. Reverse over reverse: forward over reverse it compiles without end.
        """
        start = spread(meta, len(terms.roots))

        def along(primal: Params) -> Tensor:
            slope, _ = self.gradient(self.objective(terms))(primal, start.dual, *draw.support)
            slope = shortened(slope, self.config.gradient_bound, axes=1)
            return sum((a * b).sum() for a, b in zip(slope, slopes, strict=True))

        return move(slopes, grad(along)(start.primal), self.config.inner_primal_step / terms.roots)

    def meta_step(
        self,
        meta: Expert,
        adapted: Expert,
        slopes: Params,
        violation: Tensor,
        draw: Bilevel,
        terms: Terms,
    ) -> Expert:
        """Descent of theta, clipped ascent of lambda."""
        config = self.config
        damping = config.dual_damping * (config.meta_primal_step + config.meta_dual_step)
        violation = torch.cat([violation, draw.asleep])
        ascent = terms.weights @ (violation - damping * torch.cat([adapted.dual, terms.duals]))
        slope = tuple(leaf.sum(0) for leaf in slopes)
        if draw.pushing:
            weights, duals = terms.pushing

            def pushed(primal: Params) -> Tensor:
                return weights @ self.objective(terms)(primal, duals, *draw.pushing[0])[0]

            slope = tuple(map(torch.add, slope, grad(pushed)(meta.primal)))
        slope = shortened(slope, config.gradient_bound)
        return meta._replace(
            primal=move(meta.primal, slope, config.meta_primal_step),
            dual=(meta.dual + config.meta_dual_step * ascent).relu(),
        )

    def credit(
        self, meta: Expert, adapted: Expert, asleep: Tensor, draw: Drawn, shift: Tensor
    ) -> Tensor:
        """What experts saved against the meta pair, at its prices; sleepers come as scores."""
        x, rows = draw
        awake = logits(adapted.primal, x[: len(adapted.dual)])
        of_meta, of_expert = (
            measured(z, meta.dual, rows, shift, self.config.tolerance)[0]
            for z in (logits(meta.primal, x), torch.cat([awake, asleep]))
        )
        return (of_meta - of_expert).clamp(-1, 1)


def spread(pair: Expert, levels: int) -> Expert:
    """The same pair for every level."""
    return some(pair, lambda leaf: leaf.expand(levels, *leaf.shape))


def each(rows: Rows) -> Iterable[Rows]:
    """The draws one after another."""
    return map(Rows._make, zip(*(leaf.unbind(0) for leaf in rows), strict=True))


def ada_normal_hedge(regret: Tensor, abs_regret: Tensor) -> Tensor:
    """p of Eq. 9; no mass at all is shared evenly."""

    def log_potential(r: Tensor, c: Tensor) -> Tensor:
        return torch.where((r > 0) & (c > 0), r.square() / (HEDGE_SCALE * c), 0.0)

    after, before = (
        log_potential(regret + 1, abs_regret + 1),
        log_potential(regret - 1, abs_regret - 1),
    )
    mass = torch.where(
        after > before, after + torch.log(-torch.expm1(before - after)), -float("inf")
    )
    return torch.softmax(torch.where((mass > -float("inf")).any(), mass, 0.0), 0)


# From JAX to PyTorch.


def tensor(leaf: Any) -> Tensor:
    """A copy that PyTorch may write to."""
    return torch.from_numpy(np.array(leaf))


def experts_of(pair: Any) -> Expert:
    """A pair of ours, of one expert or of many."""
    primal = tuple(tensor(layer[key]) for layer in pair.primal for key in ("weight", "bias"))
    return Expert(primal, tensor(pair.dual))


def samples_of(samples: Any) -> Samples:
    """Our samples, with the one attribute laid flat."""
    return Samples(tensor(samples.x), tensor(samples.group[..., 0]), tensor(samples.priority))


def draws_of(draws: Any) -> Draws:
    """Our draws of a round."""
    slots, held = (tensor(leaf).long() for leaf in draws.order)
    return Draws(samples_of(draws.samples), slots, held)


def tensors(game: Game) -> State:
    """The game's present state."""
    state, prior = game.state.learned, game.state.prior
    return State(
        meta=experts_of(state.meta),
        experts=experts_of(state.bank.pair),
        regret=tensor(state.bank.regret),
        abs_regret=tensor(state.bank.abs_regret),
        samples=samples_of(state.samples),
        rates=tensor(prior.rates),
        tasks=tensor(prior.tasks),
    )


def largest_difference(game: Game, peer: TorchRound, round: int) -> float:
    """Between the two states after a round from the same state on the same draws, number by number.

    Both sides move on. Samples are given, so they are left out.
    """
    awake = jnp.arange(game.size.levels) < peer.awake(round)
    batch = game.batches[round - 1]
    draws = experts.draw(workload.round_key(round), game.state.learned.samples, batch, awake)
    peer.state = tensors(game)
    peer.play(round, draws_of(draws))
    game.play(round)
    ours, theirs = (
        laid_flat(state._replace(samples=()), []) for state in (tensors(game), peer.state)
    )
    return max((one - other).abs().max().item() for one, other in zip(ours, theirs, strict=True))


def main() -> None:
    """The profile of the fastest form, of every kind and size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", action="store_true", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--style", choices=STYLES, default="compiled")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    for size in workload.SIZES:
        for kind in workload.KINDS:
            peer = TorchRound(Game(size, kind), chosen.style)
            for _ in range(3):
                peer.play(size.typical)
            with profile(activities=[ProfilerActivity.CPU]) as found:
                for _ in range(PROFILED):
                    peer.play(size.typical)
            print(f"\n{size.name}, {kind}: {PROFILED} rounds, {chosen.style}")
            print(found.key_averages().table(sort_by="self_cpu_time_total", row_limit=15))


if __name__ == "__main__":
    main()
