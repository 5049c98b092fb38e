"""What a learner's raised flags mean, in words: they stand among a round's warnings."""

__all__ = ["WARNINGS"]

WARNINGS = {
    "empty": "the task is empty: nothing learned, figures are null",
    "one_class": "the task has one class only",
    "one_group": "the task lacks a group: its constraint was switched off",
    "dual_pinned": "the dual has been 0 under a positive violation for many rounds: "
    "lower dual_damping or raise the dual steps",
    "excluded": "the notions asked for exclude each other here: the first is kept, the others are "
    "shown; look at the base rates by group",
    "small_group": "a group has too few rows to be kept at the ratio asked for: it is shown, "
    "not judged",
    "not_finite": "the update was not finite and was not made; scale the features or step smaller",
}
