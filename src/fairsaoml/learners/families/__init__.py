"""Whole rounds that a family of learners shares, each open where its members differ."""
