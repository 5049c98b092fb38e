"""Models in use: online learners, labels that come late, saving."""
