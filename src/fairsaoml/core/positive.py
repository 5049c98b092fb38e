"""Positive definite matrices, factored and solved with one at a time.

JAX shares a batch of matrices between the threads of its pool and waits for them, in one of these
threads. Two such batches at once, in a round or in two threads of a program, wait for each other
for good on a machine of two cores (jaxlib 0.10). So a batch is a loop, also under `vmap`.
"""

from jax.custom_batching import sequential_vmap
from jax.lax.linalg import cholesky
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float

__all__ = ["factor", "solution"]

Matrix = Float[Array, "width width"]


@sequential_vmap
def factor(matrix: Matrix) -> Matrix:
    """The upper triangular factor; of the matrix, the upper triangle is read."""
    # LAPACK wants columns one after another: transposed, it has them without a copy.
    return cholesky(matrix.T, symmetrize_input=False).T


@sequential_vmap
def solution(upper: Matrix, right: Float[Array, "width"]) -> Float[Array, "width"]:
    """The vector that the factored matrix takes to `right`."""
    return cho_solve((upper.T, True), right)
