"""A River pipeline: rows one by one, the groups beside them, the world changing on the way.

Two things make an ordinary script fair: the estimator's line, and items that carry their sensitive
features as River carries everything that is no feature, in a third place.
"""

from collections.abc import Iterator

from river import evaluate, metrics, preprocessing

from fairsaoml import open_stream
from fairsaoml.estimators.river import AdaptiveFairClassifier


def items() -> Iterator[tuple[dict, bool, dict]]:
    """The built-in stream, row by row: features, label, and what goes beside them."""
    stream = open_stream("synthetic", {"tasks": 4, "rows": 500})
    groups = stream.schema.attributes[0].levels
    for task in stream.tasks(0):
        for x, y, group in zip(task.x, task.y, task.group, strict=True):
            features = dict(zip(stream.schema.features, x.tolist(), strict=True))
            yield features, bool(y), {"sensitive_features": groups[group[0]]}


def main() -> None:
    """Each row is decided before it is learned from."""
    model = preprocessing.StandardScaler() | AdaptiveFairClassifier(task_size=500, constraints="dp")
    metric = metrics.Accuracy() + metrics.ROCAUC()
    for report in evaluate.iter_progressive_val_score(items(), model, metric, step=1000):
        print(f"{report['Step']} rows: {report['Accuracy']}, {report['ROCAUC']}")


if __name__ == "__main__":
    main()
