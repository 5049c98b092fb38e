"""Speed and memory as a user meets them, as ratios measured side by side: `python -m benchmarks`.

Each module that takes part has a `measure(full)`, which returns its rows of docs/benchmarks.md.
"""
