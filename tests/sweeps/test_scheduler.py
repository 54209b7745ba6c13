"""The scheduler of sweeps, against a launcher without processes."""

from __future__ import annotations

import json

import pytest
from sweep_fakes import Clock, FakeLauncher, Heard, make_cell, write_record

from fsdil_bench.runs.run_folder import RunFolder
from fsdil_bench.sweeps.launchers.launcher import Event, Launcher
from fsdil_bench.sweeps.scheduler import Scheduler, counts
from fsdil_bench.sweeps.states import state_of


@pytest.fixture
def schedule(tmp_path):
    def make(cells, launcher, **options):
        options.setdefault("clock", Clock())
        options.setdefault("grace", 5.0)
        return Scheduler(cells, launcher, tmp_path / "sweep", Heard(), **options)

    return make


def test_every_cell_is_run_and_never_more_than_fit(schedule, tmp_path):
    launcher = FakeLauncher(jobs=3)
    board = schedule([make_cell(tmp_path, n) for n in range(10)], launcher).run()
    assert counts(board) == {"done": 10}
    assert launcher.most == 3
    assert launcher.closed
    assert len(launcher.log) == 10
    assert isinstance(launcher, Launcher)


def test_what_is_complete_is_not_run_again(schedule, tmp_path):
    cells = [make_cell(tmp_path, n) for n in range(3)]
    write_record(cells[1].folder)
    launcher = FakeLauncher()
    board = schedule(cells, launcher).run()
    assert counts(board) == {"done": 3}
    assert [status.found for status in board] == [False, True, False]
    assert {key for key, _ in launcher.log} == {cells[0].key, cells[2].key}


def test_a_crash_is_tried_again_and_leaves_nothing_behind(schedule, tmp_path):
    launcher = FakeLauncher(lambda task: "crash" if task.attempt == 1 else "complete")
    (status,) = schedule([make_cell(tmp_path)], launcher).run()
    assert (status.name, status.attempt) == ("done", 2)
    assert status.failures[0]["signal"] == "SIGKILL"
    assert state_of(status.cell.folder).name == "done"
    assert not (status.cell.folder / "failure.json").exists()


@pytest.mark.parametrize(
    ("fate", "retries", "attempts"), [("crash", 2, 3), ("error", 1, 2), ("hopeless", 2, 1)]
)
def test_a_failure_costs_one_run_and_is_kept_with_its_log(
    schedule, tmp_path, fate, retries, attempts
):
    launcher = FakeLauncher(lambda task: fate if "seed0" in task.key else "complete")
    cells = [make_cell(tmp_path, n) for n in range(3)]
    board = schedule(cells, launcher, retries=retries).run()
    assert counts(board) == {"failed": 1, "done": 2}
    assert board[0].attempt == attempts
    failure = json.loads((cells[0].folder / "failure.json").read_text())
    assert failure["attempt"] == attempts
    assert len(failure["attempts"]) == attempts
    assert failure["log"].endswith(f"attempt-{attempts}/log.txt")
    if fate == "crash":
        assert "out of memory?" in failure["reason"]
        assert failure["log_tail"] == ["the last words"]
    assert state_of(cells[0].folder).name == "failed"
    again = schedule(cells, FakeLauncher()).run()
    assert counts(again) == {"done": 3}


def test_a_failure_that_cannot_be_kept_with_the_run_is_kept_with_the_sweep(schedule, tmp_path):
    cell = make_cell(tmp_path)
    cell.folder.parent.mkdir(parents=True)
    cell.folder.write_text("a file where the folder should be")
    (status,) = schedule([cell], FakeLauncher(lambda task: "hopeless")).run()
    assert status.name == "failed"
    assert (tmp_path / "sweep" / cell.key / "failure.json").is_file()


def test_the_time_limit_stops_then_kills(schedule, tmp_path):
    launcher = FakeLauncher(lambda task: {1: "deaf", 2: "hang"}.get(task.attempt, "complete"))
    (status,) = schedule([make_cell(tmp_path, limit=3)], launcher, retries=2).run()
    assert (status.name, status.attempt) == ("done", 3)
    assert all("time limit of 3 s" in failure["reason"] for failure in status.failures)
    forced = [force for _, force in launcher.cancelled]
    assert forced[:2] == [False, True]
    assert forced[-1] is False


def test_a_killed_process_whose_record_is_there_is_done(schedule, tmp_path):
    def killed_late(task):
        write_record(task.folder)
        return "crash"

    (status,) = schedule([make_cell(tmp_path)], FakeLauncher(killed_late)).run()
    assert (status.name, status.attempt, status.failures) == ("done", 1, [])


def test_a_process_that_only_says_it_is_done_is_not(schedule, tmp_path):
    class Liar(FakeLauncher):
        def end(self, task, fate):
            return task.event("finished")

    (status,) = schedule([make_cell(tmp_path)], Liar()).run()
    assert status.name == "failed"
    assert "no record" in status.reason


def test_a_record_of_a_newer_version_is_reported_and_left_alone(schedule, tmp_path):
    cells = [make_cell(tmp_path, n) for n in range(2)]
    cells[0].folder.mkdir(parents=True)
    record = cells[0].folder / "record.json"
    record.write_text('{"schema": 99}')
    launcher = FakeLauncher()
    board = schedule(cells, launcher).run()
    assert [status.name for status in board] == ["other version", "done"]
    assert "schema 99" in board[0].reason
    assert record.read_text() == '{"schema": 99}'
    assert [key for key, _ in launcher.log] == [cells[1].key]


@pytest.mark.parametrize("text", ["", '{"schema": 1, "run_id": "ab', "[]", "\0\0\0"])
def test_a_half_written_record_is_made_again(schedule, tmp_path, text):
    cell = make_cell(tmp_path)
    cell.folder.mkdir(parents=True)
    (cell.folder / "record.json").write_text(text)
    requests = []

    def behave(task):
        requests.append(task.request)
        return "complete"

    (status,) = schedule([cell], FakeLauncher(behave)).run()
    assert status.name == "done"
    assert requests[0]["fresh"] is True


def test_a_cell_that_another_has_is_waited_for(schedule, tmp_path):
    cells = [make_cell(tmp_path, n) for n in range(2)]
    scheduler = schedule(cells, FakeLauncher())
    looks = []
    with RunFolder(cells[0].folder).locked():
        original = scheduler._look_around

        def look():
            original()
            looks.append(scheduler.board[0].name)
            if len(looks) == 20:
                write_record(cells[0].folder)

        scheduler._look_around = look
        board = scheduler.run()
    assert looks[0] == "elsewhere"
    assert [status.name for status in board] == ["done", "done"]
    assert [status.attempt for status in board] == [0, 1]


def test_it_is_taken_over_when_the_other_dies(schedule, tmp_path):
    cell = make_cell(tmp_path)
    scheduler = schedule([cell], FakeLauncher())
    lock = RunFolder(cell.folder).locked()
    lock.__enter__()
    original, looks = scheduler._look_around, []

    def look():
        looks.append(scheduler.board[0].name)
        if len(looks) == 20:
            lock.__exit__(None, None, None)
        original()

    scheduler._look_around = look
    (status,) = scheduler.run()
    assert looks[1] == "elsewhere"
    assert (status.name, status.attempt) == ("done", 1)


def test_a_worker_that_finds_the_run_taken_is_no_failure(schedule, tmp_path):
    fates = iter(["elsewhere", "elsewhere", "crash", "complete"])
    launcher = FakeLauncher(lambda task: next(fates))
    (status,) = schedule([make_cell(tmp_path)], launcher, retries=1).run()
    assert (status.name, len(status.failures)) == ("done", 1)
    assert status.failures[0]["signal"] == "SIGKILL"  # not what an earlier process had left


def test_a_clock_that_is_set_does_not_stop_runs(schedule, tmp_path, monkeypatch):
    import random
    import time

    monkeypatch.setattr(time, "time", lambda: random.uniform(-1e9, 1e9))
    board = schedule([make_cell(tmp_path, n, limit=60) for n in range(4)], FakeLauncher()).run()
    assert counts(board) == {"done": 4}
    assert not any(status.failures for status in board)


def test_sweeps_of_the_same_second_have_folders_of_their_own(tmp_path, monkeypatch):
    from fsdil_bench.sweeps import session

    class Stuck(session.datetime.datetime):
        @classmethod
        def now(cls):
            return cls(2026, 1, 1)

    monkeypatch.setattr(session.datetime, "datetime", Stuck)
    folders = {session.sweep_folder(tmp_path, "x") for _ in range(5)}
    assert len(folders) == 5


def test_runs_that_share_a_base_learn_it_once(schedule, tmp_path):
    """Until the base is kept, one run of each group; then all of them."""
    groups = [tmp_path / "base-a", tmp_path / "base-b"]
    cells = [make_cell(tmp_path, n, base=groups[n % 2]) for n in range(8)]
    learned = []
    by_key = {cell.key: cell for cell in cells}
    together = []

    class Bases(FakeLauncher):
        def poll(self, timeout):
            together.append(sorted(by_key[key].request.seed for key in self.tasks))
            return super().poll(timeout)

        def end(self, task, fate):
            base = by_key[task.key].base
            if not base.exists():
                learned.append(base)
                base.mkdir()
                (base / "origin.txt").write_text("x")
            return super().end(task, fate)

    board = schedule(cells, Bases(jobs=4)).run()
    assert counts(board) == {"done": 8}
    assert sorted(learned) == groups
    assert together[0] == [0, 1]
    assert max(map(len, together)) == 4


def test_if_the_run_that_learns_the_base_fails_the_next_one_does(schedule, tmp_path):
    cells = [make_cell(tmp_path, n, base=tmp_path / "base") for n in range(3)]
    launcher = FakeLauncher(lambda task: "hopeless" if "seed0" in task.key else "complete", jobs=3)
    board = schedule(cells, launcher).run()
    assert counts(board) == {"failed": 1, "done": 2}
    assert launcher.most == 1


def test_stopping_asks_the_runs_to_stop_and_starts_no_more(schedule, tmp_path):
    cells = [make_cell(tmp_path, n) for n in range(5)]
    launcher = FakeLauncher(lambda task: "hang")
    scheduler = schedule(cells, launcher)
    launcher.behave = lambda task: (scheduler.stop(), "hang")[1] if "seed1" in task.key else "hang"
    board = scheduler.run()
    assert counts(board) == {"stopped": 5}
    assert len(launcher.log) == 2
    assert scheduler.interrupted
    assert not any(force for _, force in launcher.cancelled)
    assert not list(tmp_path.rglob("failure.json"))


def test_stopping_twice_kills(schedule, tmp_path):
    launcher = FakeLauncher()
    scheduler = schedule([make_cell(tmp_path)], launcher, grace=1e9)

    def behave(task):
        scheduler.stop()
        scheduler.stop()
        return "deaf"

    launcher.behave = behave
    assert counts(scheduler.run()) == {"stopped": 1}
    assert launcher.cancelled[-1][1] is True


def test_a_launcher_that_never_answers_does_not_hold_up_the_end(schedule, tmp_path):
    launcher = FakeLauncher()
    scheduler = schedule([make_cell(tmp_path)], launcher)
    launcher.behave = lambda task: (scheduler.stop(), "immortal")[1]
    assert counts(scheduler.run()) == {"stopped": 1}
    assert launcher.closed


def test_a_launcher_that_raises_costs_an_attempt(schedule, tmp_path):
    class Down(FakeLauncher):
        failures = 1

        def submit(self, tasks):
            if self.failures:
                self.failures -= 1
                raise ConnectionError("the cluster is away")
            super().submit(tasks)

    (status,) = schedule([make_cell(tmp_path)], Down()).run()
    assert (status.name, status.attempt) == ("done", 2)
    assert "the cluster is away" in status.failures[0]["reason"]


def test_events_of_an_attempt_that_is_over_are_ignored(schedule, tmp_path):
    class Late(FakeLauncher):
        def poll(self, timeout):
            stale = [Event(key, "lost", task.attempt - 1) for key, task in self.tasks.items()]
            return [*super().poll(timeout), *stale, Event("nobody", "failed")]

    fates = iter(["crash", "complete"])
    (status,) = schedule([make_cell(tmp_path)], Late(lambda task: next(fates))).run()
    assert (status.name, status.attempt) == ("done", 2)


def test_a_disk_that_takes_no_request_fails_the_cell_and_not_the_sweep(
    schedule, tmp_path, monkeypatch
):
    from fsdil_bench.sweeps import scheduler as module

    real = module.write_atomically

    def full(path, text):
        if "seed0" in str(path):
            raise OSError(28, "No space left on device")
        real(path, text)

    monkeypatch.setattr(module, "write_atomically", full)
    board = schedule([make_cell(tmp_path, n) for n in range(2)], FakeLauncher()).run()
    assert [status.name for status in board] == ["failed", "done"]
    assert "No space left" in board[0].reason
