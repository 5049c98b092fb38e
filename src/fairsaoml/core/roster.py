"""Who the experts of the heads are: whose head each belongs to, what it remembers, what it sees.

Experts see the columns alone (linear) or a richer map of them, and remember more or less: one the
last round alone, others forget a half, an eighth or a thirty-second of the past each round, and one
nothing. The first head, the label's, has all of them. What the columns say of a group is steadier
and is corrected by measured gaps: a group's head has four.

Curvature is shared: heads that learn from the rows of the same label, a `kind`, differ in it by
little more than a factor. So a kind, a memory and a map have one matrix.
"""

from functools import cache
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from fairsaoml.core.arrays import Array

SHORTEST = 1e-4  # what the shortest memory keeps of a round: nearly nothing
# What each memory keeps of the past in a full round: it forgets nearly all, 1/2, 1/8, ..., nothing.
KEEPS = np.array([SHORTEST, *(1 - 2.0**-k for k in (1, 3, 5)), 1.0], np.float32)
LINEAR, RICH = (0, 1, 2, 3, 4), (3, 4)  # memories of the first head's experts
GROUP_LINEAR, GROUP_RICH = (1, 2, 3), (4,)  # of those of the other heads
TURNS = 2  # each expert of the rich map steps every second round

PerExpert = Int[Array, "expert"]
Family = tuple[int, tuple[int, ...]]  # whose head, and its memories


class Crew(NamedTuple):
    """Experts that lie together, see the same features and step in the same rounds.

    Its own experts, families and matrices are counted from 0.
    """

    members: slice
    turn: int | None  # the rich map's experts have one; the others step in every round
    families: slice
    head: PerExpert
    family: PerExpert
    of_family: Float[Array, "family expert"]  # 1 or 0
    longer: PerExpert  # the family's next longer memory; the longest is its own
    borrows: Float[Array, "expert"]  # 1 or 0: whether there is a longer one
    longest: Int[Array, "family"]
    matrix: PerExpert  # of products of the features of the rows that it remembers
    kind: Int[Array, "matrix"]  # of the rows that a matrix is of
    memory: Int[Array, "matrix"]


class Roster(NamedTuple):
    """All experts in their order: those who see the columns alone come first."""

    head: PerExpert
    memory: PerExpert  # its place in KEEPS
    family: PerExpert  # experts that share a ridge
    longest: Int[Array, "family"]
    of_head: Float[Array, "head expert"]  # 1 or 0
    crews: tuple[Crew, ...]

    @property
    def linear(self) -> int:
        """How many experts see the columns alone."""
        return self.crews[0].members.stop


@cache
def roster(kinds: tuple[int, ...]) -> Roster:
    """The experts of heads that learn from rows of these kinds, 0 being all: the first head's.

    >>> roster((0, 1, 2)).head.tolist()
    [0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 1, 0, 2]
    """
    heads = range(len(kinds))
    # The linear experts of a head are a family; one of the rich map is a family by itself.
    linear: list[Family] = [(head, LINEAR if head == 0 else GROUP_LINEAR) for head in heads]
    rich: list[Family] = [
        (head, (memory,)) for head in heads for memory in (RICH if head == 0 else GROUP_RICH)
    ]
    crews = [linear, *(rich[turn::TURNS] for turn in range(TURNS))]
    families = [family for crew in crews for family in crew]
    sizes = [len(memories) for _, memories in families]
    head = np.repeat([head for head, _ in families], sizes)
    memory = np.concatenate([memories for _, memories in families])
    family = np.repeat(np.arange(len(families)), sizes)
    begins = accumulate(map(len, crews), initial=0)
    return Roster(
        head=head,
        memory=memory,
        family=family,
        longest=np.cumsum(sizes) - 1,
        of_head=(head == np.array(heads)[:, None]).astype(np.float32),
        crews=tuple(
            _crew(np.array(kinds), head, memory, family, place - 1, slice(begin, end))
            for place, (begin, end) in enumerate(pairwise(begins))
        ),
    )


def _crew(
    kinds: Int[Array, "head"],
    head: PerExpert,
    memory: PerExpert,
    family: PerExpert,
    turn: int,
    families: slice,
) -> Crew:
    """A crew of families; its matrices are those that its members need, each once."""
    members = slice(*np.searchsorted(family, (families.start, families.stop)).tolist())
    needed = np.stack([kinds[head], memory], axis=1)[members]
    matrices, matrix = np.unique(needed, axis=0, return_inverse=True)
    own = family[members] - families.start
    has_longer = np.append(own[1:] == own[:-1], False)
    return Crew(
        members=members,
        turn=None if turn < 0 else turn,
        families=families,
        head=head[members],
        family=own,
        of_family=(own == np.unique(own)[:, None]).astype(np.float32),
        longer=np.arange(len(own)) + has_longer,
        borrows=has_longer.astype(np.float32),
        longest=np.flatnonzero(~has_longer),
        matrix=matrix.ravel(),
        kind=matrices[:, 0],
        memory=matrices[:, 1],
    )
