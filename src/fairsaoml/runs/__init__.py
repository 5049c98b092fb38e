"""Runs in folders: what to run, the journal, checkpoints, and what is done with them later."""
