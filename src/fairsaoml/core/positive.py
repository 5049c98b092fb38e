"""Positive definite matrices, factored and solved with one at a time.

JAX shares a batch of matrices between the threads of its pool and waits for them, in one of these
threads. Two such batches at once, in a round or in two threads of a program, wait for each other
for good on a machine of two cores (jaxlib 0.10). So a batch is a loop here, also under `vmap`.
"""

import jax
import jax.numpy as jnp
from jax.custom_batching import sequential_vmap
from jax.lax.linalg import cholesky
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float

__all__ = ["factor", "factors", "solution", "solutions"]

Matrix = Float[Array, "width width"]
Matrices = Float[Array, "head memory width width"]
Vectors = Float[Array, "head memory width"]


@sequential_vmap
def factor(matrix: Matrix) -> Matrix:
    """The upper triangular factor; of the matrix, the upper triangle is read."""
    # LAPACK wants columns one after another: transposed, it has them without a copy.
    return cholesky(matrix.T, symmetrize_input=False).T


@sequential_vmap
def solution(upper: Matrix, right: Float[Array, "width"]) -> Float[Array, "width"]:
    """The vector that the factored matrix takes to `right`."""
    return cho_solve((upper.T, True), right)


def factors(
    matrices: Matrices, of_head: Float[Array, "head width width"], diagonal: Vectors
) -> Matrices:
    """The factors of matrices, each with its head's and a diagonal added to it."""
    heads, memories, width, _ = matrices.shape

    def one(each: tuple[Matrix, Array, Array]) -> Matrix:
        matrix, head, diagonal = each
        return factor(matrix + of_head[head] + jnp.diag(diagonal))

    flat = matrices.reshape(-1, width, width)
    head = jnp.repeat(jnp.arange(heads), memories)
    upper = jax.lax.map(one, (flat, head, diagonal.reshape(-1, width)))
    return upper.reshape(matrices.shape)


def solutions(upper: Matrices, right: Vectors) -> Vectors:
    """The vectors that factored matrices take to those on the right."""
    flat = upper.reshape(-1, *upper.shape[2:]), right.reshape(-1, right.shape[2])
    return jax.vmap(solution)(*flat).reshape(right.shape)
