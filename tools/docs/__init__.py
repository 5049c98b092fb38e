"""The documentation: checked, run, and built into a few HTML pages by `python -m tools.docs`."""
