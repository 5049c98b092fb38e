"""Bridges to other libraries: scikit-learn and River; and a learner with a memory of its own."""
