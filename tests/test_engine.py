"""Many runs at once: the same files wherever they are played, and nobody's death ends the rest."""

import multiprocessing
import os
import signal
import sys
from dataclasses import replace

import pytest

import tiny
from fairsaoml.compare import engine
from fairsaoml.compare.engine import LOSSES, Job, run_all
from fairsaoml.core.errors import ConfigError, DataError, RunError
from fairsaoml.evaluate.threads import one_thread
from fairsaoml.runs.folder import is_finished
from fairsaoml.runs.runner import Interrupted, run

# The learner that compiles fastest: every process that is started here has to.
SHORT = replace(tiny.spec(), learner="fair-glc", learner_settings=tiny.SHARED)
LONG = replace(SHORT, stream_settings={**tiny.STREAM, "tasks": 50})  # to be killed in the middle
OTHERS = [replace(SHORT, seeds=(seed, seed + 1)) for seed in (0, 2)]


def jobs_in(root, specs):
    return [Job(spec, root / f"run-{number}") for number, spec in enumerate(specs)]


def journals(jobs):
    return [tiny.lines(job.folder) for job in jobs]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The journals of the long run and two short ones, each run by itself in this process."""
    jobs = jobs_in(tmp_path_factory.mktemp("alone"), [LONG, *OTHERS])
    for job in jobs:
        run(job.spec, job.folder)
    return journals(jobs)


@pytest.fixture(scope="module")
def cluster():
    """A real cluster: a scheduler and two worker processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as found:
        yield found


def workers():
    """The processes of ours that are alive."""
    return [p for p in multiprocessing.active_children() if p.name.startswith("fairsaoml")]


def kinds(events, *wanted):
    return [event.kind for event in events if event.kind in wanted]


def test_a_worker_killed_in_the_middle_costs_a_retry_and_changes_no_byte(tmp_path, alone):
    jobs, events, killed = jobs_in(tmp_path, [LONG, *OTHERS]), [], []

    def watch(event):
        events.append(event)
        if event.kind == "round" and event.job == 0 and not killed:
            killed.append(event.process)
            os.kill(event.process, signal.SIGKILL)

    run_all(jobs, workers=2, on_event=watch)
    assert [event.job for event in events if event.kind == "lost"] == [0]
    assert sorted(event.job for event in events if event.kind == "finished") == [0, 1, 2]
    assert journals(jobs) == alone


def test_a_cluster_plays_the_same_bytes_though_one_of_its_workers_is_killed(
    tmp_path, alone, cluster
):
    jobs, events, killed = jobs_in(tmp_path, [LONG, *OTHERS]), [], []
    pids = [worker.pid for worker in cluster.workers.values()]

    def watch(event):
        events.append(event)
        if event.kind == "round" and event.job == 0 and not killed:
            killed.append(event.process)
            os.kill(event.process, signal.SIGKILL)

    run_all(jobs, engine="dask", address=cluster.scheduler_address, on_event=watch)
    assert set(killed) < set(pids)
    assert [event.job for event in events if event.kind == "lost"] == [0]
    assert sorted(event.job for event in events if event.kind == "finished") == [0, 1, 2]
    assert journals(jobs) == alone


@pytest.mark.parametrize(
    "engine", ["this process", pytest.param("processes", marks=pytest.mark.slow), "dask"]
)
def test_what_was_stopped_is_gone_on_with_by_the_same_call(tmp_path, alone, engine, request):
    where = {"this process": {"workers": 1}, "processes": {"workers": 2}}.get(engine)
    if where is None:
        found = request.getfixturevalue("cluster")
        where = {"engine": "dask", "address": found.scheduler_address}
    jobs = jobs_in(tmp_path, [LONG, *OTHERS])

    def press_control_c(event):
        if event.kind == "round" and event.job == 0 and event.round == 5:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="the same command continues"):
        run_all(jobs, **where, on_event=press_control_c)
    assert not is_finished(jobs[0].folder)
    assert not workers()  # nobody is left to write beside the next call
    run_all(jobs, **where)
    assert journals(jobs) == alone


def test_what_is_finished_is_kept_and_force_plays_it_anew(tmp_path, alone):
    jobs, events = jobs_in(tmp_path, OTHERS), []
    run_all(jobs, workers=1)
    before = [(job.folder / "rounds.jsonl").stat().st_mtime_ns for job in jobs]
    run_all(jobs, workers=2, on_event=events.append)
    assert [event.kind for event in events] == ["kept", "kept"]
    assert [(job.folder / "rounds.jsonl").stat().st_mtime_ns for job in jobs] == before
    events.clear()
    run_all(jobs, workers=1, force=True, on_event=events.append)
    assert kinds(events, "started", "finished", "kept") == ["started", "finished"] * 2
    assert journals(jobs) == alone[1:]


def test_an_event_says_how_far_a_run_is(tmp_path):
    events = []
    (job,) = jobs_in(tmp_path, OTHERS[:1])
    run_all([job], on_event=events.append)
    rounds = [event for event in events if event.kind == "round"]
    assert [event.round for event in rounds] == list(range(1, tiny.ROUNDS + 1))
    assert {event.length for event in rounds} == {tiny.ROUNDS}
    seeds = [line["accuracy"] for line in tiny.records(job.folder)[-2:]]
    assert rounds[-1].figures["accuracy"] == pytest.approx(sum(seeds) / 2, abs=1e-6)


def test_the_error_of_a_run_in_another_process_is_the_same_error(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRSAOML_DATA_HOME", str(tmp_path / "nothing"))
    missing = replace(SHORT, stream="movielens", stream_settings={})
    jobs = jobs_in(tmp_path, [missing, LONG])
    with pytest.raises(DataError, match="movielens"):
        run_all(jobs, workers=2)
    assert not workers()


def test_a_run_that_ends_every_worker_is_given_up(tmp_path, monkeypatch):
    most = 2  # workers; each takes seconds to start
    assert most < LOSSES
    monkeypatch.setattr(engine, "LOSSES", most)
    jobs, lost = jobs_in(tmp_path, [LONG, LONG]), []

    def watch(event):
        if event.kind == "lost":
            lost.append(event.job)
        if event.kind == "started":
            os.kill(event.process, signal.SIGKILL)

    with pytest.raises(RunError, match=f"ended {most} workers; is the memory full"):
        run_all(jobs, workers=2, on_event=watch)
    assert max(map(lost.count, lost), default=0) < most
    assert not workers()


def test_another_run_in_a_folder_is_refused(tmp_path):
    (job,) = jobs_in(tmp_path, OTHERS[:1])
    run_all([job])
    with pytest.raises(RunError, match="holds another run"):
        run_all([job._replace(spec=OTHERS[1])])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"engine": "dusk"}, "unknown engine 'dusk'; did you mean 'dask'"),
        ({"engine": "dask"}, "expected --address with --engine dask"),
        ({"address": "tcp://127.0.0.1:1"}, "expected --address with --engine dask"),
        ({"workers": 0}, "at least one worker"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_begins(tmp_path, asked, said):
    with pytest.raises(ConfigError, match=said):
        run_all(jobs_in(tmp_path, OTHERS), **asked)
    assert not list(tmp_path.iterdir())


def test_two_runs_in_one_folder_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="a folder of its own"):
        run_all([Job(spec, tmp_path / "one") for spec in OTHERS])


def test_without_distributed_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError, match=r"pip install 'fairsaoml\[dask\]'"):
        run_all(jobs_in(tmp_path, OTHERS), engine="dask", address="tcp://127.0.0.1:1")


def test_a_table_of_ones_own_needs_a_path_that_every_worker_understands(tmp_path):
    spec = replace(SHORT, stream="loans.csv", stream_settings={})
    with pytest.raises(ConfigError, match="absolute path"):
        run_all(jobs_in(tmp_path, [spec]), engine="dask", address="tcp://127.0.0.1:1")


@pytest.mark.parametrize("told", ["PJRT_NPROC", "NPROC"])
def test_runs_hold_xla_to_one_thread_unless_told_otherwise(monkeypatch, told):
    monkeypatch.delenv("NPROC", raising=False)
    monkeypatch.delenv("PJRT_NPROC", raising=False)
    one_thread()
    assert os.environ.pop("PJRT_NPROC") == "1"
    monkeypatch.setenv(told, "3")
    one_thread()
    assert os.environ[told] == "3"
    assert os.environ.get("PJRT_NPROC") in (None, "3")


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ((), {"engine": "local", "workers": 1, "address": None}),
        (("--jobs", 3), {"engine": "local", "workers": 3, "address": None}),
        (
            ("--engine", "dask", "--address", "tcp://here:1"),
            {"engine": "dask", "workers": 1, "address": "tcp://here:1"},
        ),
    ],
)
def test_compare_plays_where_it_is_told_to(command, monkeypatch, options, asked):
    found = {}
    monkeypatch.setattr(
        "fairsaoml.compare.compare.compare",
        lambda specs, folder, **told: found.update(told) or {"learners": []},
    )
    assert command("compare", "synthetic", "--learners", "aod", "--json", *options).code == 0
    assert {key: found[key] for key in asked} == asked
