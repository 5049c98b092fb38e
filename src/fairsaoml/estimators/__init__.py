"""Learners as estimators of other libraries: `estimators.sklearn` and `estimators.river`."""
