"""Models of scikit-learn, Fairlearn and River, run on the same rounds as our learners.

They get the same features, task by task: each task is decided with what was learned from the tasks
before it, then its labels are shown. `fairsaoml report` reads their folders like any run's.
"""

from fairsaoml.compare.alternatives.catalog import CATALOG
from fairsaoml.compare.alternatives.runs import (
    AlternativeSpec,
    compare_alternatives,
    plan,
    run_alternative,
)

__all__ = ["CATALOG", "AlternativeSpec", "compare_alternatives", "plan", "run_alternative"]
