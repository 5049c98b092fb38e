"""What the estimators of all libraries share: a learner, the coding of its rows, and a folder."""

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from fairsaoml.core.types import Schema
from fairsaoml.estimators.coding import Groups, Scaling
from fairsaoml.estimators.parameters import Own, Parameters
from fairsaoml.serve.online import OnlineLearner
from fairsaoml.serve.saving import Saveable, Saved, part

__all__ = ["SHARED", "Adapter"]

SHARED = {
    "standardize": Own(
        True,
        "whether features are centred and scaled by the first task's rows, and cut at five "
        "standard deviations; without it they should be of about unit size",
    ),
    "known_groups": Own(
        None,
        "groups that rows after the first task may bring: a list, or {column: list}; others that "
        "come later are counted as 'unseen' and are in no constraint",
    ),
}


class Adapter(Parameters, Saveable):
    """An estimator around an `OnlineLearner`, which is there once the first task has come."""

    standardize: bool
    known_groups: Any

    _how: ClassVar[str]  # groups are given in this library
    _online: OnlineLearner | None = None
    _groups: Groups = Groups()
    _scaling: Scaling = Scaling.none(0)

    def _settle(
        self, features: Sequence[str], table: Any, settings: dict[str, Any], seed: int
    ) -> OnlineLearner:
        """Begin with a learner of these features and of the groups in a table."""
        groups = Groups.of(table, self.known_groups)
        if table is None and settings["constraints"] != "none":
            warnings.warn(
                f"{type(self).__name__} learns without fairness: {self._how}, or say "
                "constraints='none'",
                stacklevel=4,
            )
        schema = Schema(
            features=tuple(features),
            attributes=tuple(column.attribute for column in groups.columns),
        )
        online = OnlineLearner(schema, self._learner, settings, seed=seed)
        self._online, self._groups = online, groups
        return online

    def _saved(self) -> Saved:
        online = None if self._online is None else self._online._saved()
        arrays, about = self._further()
        return Saved(
            round=0 if online is None else online.round,
            arrays={
                "online": () if online is None else online.arrays,
                "scaling": self._scaling,
                **arrays,
            },
            about={
                "parameters": self._parameters(),
                "groups": self._groups.to_json(),
                **about,
                "online": None if online is None else online.about,
            },
        )

    @classmethod
    def _restored(cls, saved: Saved) -> Self:
        about = saved.about
        self = cls._given(about["parameters"])
        if about["online"] is not None:
            self._online = OnlineLearner._restored(
                Saved(saved.round, part(saved.arrays, "online"), about["online"])
            )
        self._groups = Groups.from_json(about["groups"])
        scaling = part(saved.arrays, "scaling")
        self._scaling = Scaling(*(scaling[f".{name}"] for name in Scaling._fields))
        self._take_back(saved)
        return self

    @abstractmethod
    def _further(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What else is saved: arrays by name, plain JSON by name."""

    @abstractmethod
    def _take_back(self, saved: Saved) -> None:
        """Set what `_further` gave."""
