"""The scoring functions and their gradients by hand.

One function serves both models: x W + b with nothing before it is the logistic model, with ReLU
layers before it the MLP. Parameters are one flat vector, layer by layer, W before b, so that
norms, projections and central differences need no tree.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from oracles.batch import Matrix, Vector

__all__ = ["logits", "parameter_count", "pull_back", "sigmoid", "unpack"]


def sigmoid(z: Vector) -> Vector:
    """1 / (1 + exp(-z)), in the form that does not overflow."""
    return (1 + np.tanh(z / 2)) / 2


def parameter_count(widths: Sequence[int]) -> int:
    """Of the layers widths[0] -> widths[1] -> ... -> 1.

    >>> parameter_count((3, 1)), parameter_count((3, 4, 1))
    (4, 21)
    """
    return sum(fan_in * fan_out + fan_out for fan_in, fan_out in pairwise(widths))


def unpack(theta: Vector, widths: Sequence[int]) -> list[tuple[Matrix, Vector]]:
    """(W, b) per layer; W has one column per unit."""
    layers, at = [], 0
    for fan_in, fan_out in pairwise(widths):
        W = theta[at : at + fan_in * fan_out].reshape(fan_in, fan_out)
        at += fan_in * fan_out
        b = theta[at : at + fan_out]
        at += fan_out
        layers.append((W, b))
    return layers


def forward(theta: Vector, x: Matrix, widths: Sequence[int]) -> list[Matrix]:
    """What goes into each layer, and at the end what comes out of the last."""
    layers = unpack(theta, widths)
    signals = [x]
    for W, b in layers[:-1]:
        signals.append(np.maximum(signals[-1] @ W + b, 0.0))
    W, b = layers[-1]
    signals.append(signals[-1] @ W + b)
    return signals


def logits(theta: Vector, x: Matrix, widths: Sequence[int]) -> Vector:
    """z of every row.

    >>> logits(np.array([1.0, -1.0, 0.5]), np.array([[2.0, 3.0]]), (2, 1))
    array([-0.5])
    """
    return forward(theta, x, widths)[-1][:, 0]


def pull_back(theta: Vector, x: Matrix, slope: Vector, widths: Sequence[int]) -> Vector:
    """sum_i slope_i dz_i / dtheta: the chain rule from the logits down to the parameters.

    >>> pull_back(np.zeros(3), np.array([[2.0, 3.0]]), np.array([10.0]), (2, 1))
    array([20., 30., 10.])
    """
    layers = unpack(theta, widths)
    signals = forward(theta, x, widths)
    pieces: list[Vector] = []
    downstream = slope[:, None]  # derivative of the sum by what this layer puts out, before ReLU
    for depth in reversed(range(len(layers))):
        W, _ = layers[depth]
        pieces = [(signals[depth].T @ downstream).ravel(), downstream.sum(axis=0), *pieces]
        downstream = (downstream @ W.T) * (signals[depth] > 0)  # ReLU passes where it was open
    return np.concatenate(pieces)
