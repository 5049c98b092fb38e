"""Ten lines: decide each task first, then learn from it; the stream changes twice, unannounced."""

from fairsaoml import AdaptiveFairClassifier, open_stream

model = AdaptiveFairClassifier()  # equalized odds at a ratio of 0.9, unless you say otherwise
for round, task in enumerate(open_stream("synthetic", {"tasks": 10}).tasks(0), start=1):
    if round > 1:
        yes, group = model.predict(task.x) == 1, task.group[:, 0]
        rates = sorted(yes[group == one].mean() for one in (0, 1))
        print(f"round {round}: accuracy {(yes == task.y).mean():.2f}, DP {rates[0] / rates[1]:.2f}")
    model.partial_fit(task.x, task.y, sensitive_features=task.group[:, 0])
model.save("runs/quickstart")  # and `fairsaoml.load` goes on from there
