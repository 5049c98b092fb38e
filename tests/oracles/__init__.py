"""Independent NumPy versions of the mathematics, in float64, to be read beside the paper.

Nothing here imports JAX or the package: loops over experts, sets of intervals, gradients by hand.
Where the library and an oracle disagree, one of them misreads the paper.
"""
