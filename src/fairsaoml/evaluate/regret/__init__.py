"""Regret against comparators that are solved."""
