"""What a user would pick instead: other libraries' learners, on the same rounds as ours.

They get the same features, task by task: a task is decided by what was learned from the tasks
before it, then its labels are shown. Their folders are runs as ours are, for `fairsaoml report`.
"""

from fairsaoml.compare.alternatives.catalog import CATALOG
from fairsaoml.compare.alternatives.runs import PeerSpec, beside, plan, play

__all__ = ["CATALOG", "PeerSpec", "beside", "plan", "play"]
