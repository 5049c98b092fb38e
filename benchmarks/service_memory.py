"""Memory of a service that goes on: `python -m benchmarks.service_memory RUN ROUNDS`.

A fresh process decides, labels and learns small tasks, and is asked how fair it is, as by the page
after every round. Its resident memory is read after 200 rounds and after the last one.
"""

import gc
import json
import sys
from pathlib import Path

from benchmarks.memory import EARLY, resident
from benchmarks.service import open_service, people
from fairsaoml.evaluate.compilation import use_cache
from fairsaoml.evaluate.threads import one_thread
from fairsaoml.serve.views import Views

ROWS = 20


def main(folder: str, rounds: int) -> None:
    """Print resident bytes after the early rounds and after all."""
    use_cache()
    one_thread()
    service = open_service(Path(folder), ROWS)
    views, seen = Views(service), []
    for round in range(1, rounds + 1):
        rows = [{"id": f"{round}-{i}", **row} for i, row in enumerate(people(ROWS, round))]
        service.decide([rows])
        service.label([{"id": row["id"], "label": "ny"[row["x0"] > 0]} for row in rows])
        service.tick()
        assert service.learn_next()
        views.fairness()
        views.rounds(service.live.round - 1)
        if round in (EARLY, rounds):
            gc.collect()
            seen.append(resident())
    service.close()
    print(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
