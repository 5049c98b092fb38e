"""The evaluation of the paper (KDD 2022): figures, tables, ablation, bounds, tuning."""
