"""Models that learn task by task: anything with `partial_fit`, or a pipeline that ends in it."""

from typing import Any

from fairsaoml.core.errors import ConfigError

__all__ = ["last_step", "require_learner", "teach"]


def last_step(model: Any) -> Any:
    """The part of a model that learns: the last step of a pipeline, else the model itself."""
    return model.steps[-1][1] if _is_pipeline(model) else model


def require_learner(model: Any) -> None:
    """Refuse a model that cannot predict, cannot learn, or whose preprocessing is not fitted.

    >>> require_learner("a name")
    Traceback (most recent call last):
    fairsaoml.core.errors.ConfigError: expected a model with predict, got str; give one that has it
    """
    for part, method in ((model, "predict"), (last_step(model), "partial_fit")):
        if not callable(getattr(part, method, None)):
            raise ConfigError(
                f"expected a model with {method}, got {type(part).__name__}; give one that has it"
            )
    if _is_pipeline(model) and len(model.steps) > 1:
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted

        try:
            for _, step in model.steps[:-1]:
                check_is_fitted(step)
        except (NotFittedError, TypeError):  # TypeError: the word "passthrough", or no estimator
            if not isinstance(step, str):
                raise ConfigError(
                    f"expected a pipeline whose preprocessing is fitted, got {type(step).__name__} "
                    "as it was made; fit the steps before the last one on past rows first"
                ) from None


def teach(model: Any, X: Any, y: Any, **also: Any) -> None:
    """One round of learning; a pipeline's preprocessing stays as it was fitted."""
    if _is_pipeline(model) and len(model.steps) > 1:
        X = model[:-1].transform(X)
    last_step(model).partial_fit(X, y, **also)


def _is_pipeline(model: Any) -> bool:
    return isinstance(getattr(model, "steps", None), list) and hasattr(model, "__getitem__")
