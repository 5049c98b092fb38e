"""Search for settings that make a learner accurate and fair."""
