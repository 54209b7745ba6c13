from __future__ import annotations

import threading
import time

import pytest

from fsdil_bench.system.prefetch import default_workers, ordered_map


def background():
    return [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_results_come_in_order(workers):
    def slow_first(number):
        time.sleep(0.01 if number % 4 == 0 else 0)
        return number * number

    assert list(ordered_map(slow_first, range(20), workers, 5)) == [n * n for n in range(20)]
    assert not background()


def test_no_items():
    assert list(ordered_map(str, [], 2, 3)) == []


def test_work_is_done_ahead_but_not_further_than_allowed():
    taken = []

    def items():
        for number in range(100):
            taken.append(number)
            yield number

    results = ordered_map(lambda number: number, items(), 2, 5)
    assert taken == []
    assert next(results) == 0
    assert len(taken) == 6
    assert next(results) == 1
    assert len(taken) == 7
    results.close()


def test_the_work_is_done_by_so_many_other_threads():
    meeting = threading.Barrier(3, timeout=240)  # breaks unless three are at work at once

    def meet(_):
        meeting.wait()
        return threading.get_ident()

    threads = set(ordered_map(meet, range(3), 3, 3))
    assert len(threads) == 3
    assert threading.get_ident() not in threads
    assert set(ordered_map(lambda _: threading.get_ident(), range(3), 0, 3)) == {
        threading.get_ident()
    }


@pytest.mark.parametrize("workers", [0, 2])
def test_an_exception_comes_in_its_turn(workers):
    def fail_at_three(number):
        if number == 3:
            raise KeyError("three")
        return number

    results = ordered_map(fail_at_three, range(10), workers, 8)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError, match="three"):
        next(results)
    assert not background()
    with pytest.raises(StopIteration):
        next(results)


def test_an_exception_of_the_items_reaches_the_caller():
    def items():
        yield 1
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        list(ordered_map(str, items(), 2, 4))
    assert not background()


def test_an_early_end_leaves_no_thread_and_drops_what_was_not_begun():
    done = []

    def work(number):
        time.sleep(0.02)
        done.append(number)
        return number

    for _ in ordered_map(work, range(1000), 2, 50):
        break
    assert not background()
    assert len(done) < 20


def test_a_consumer_that_raises_leaves_no_thread():
    def consume():
        for number in ordered_map(str, range(1000), 2, 10):
            raise RuntimeError(number)

    with pytest.raises(RuntimeError):
        consume()
    assert not background()


def test_default_number_of_workers_is_bounded(monkeypatch):
    assert 1 <= default_workers() <= 8
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert default_workers() == 8
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 5, 7})
    assert default_workers() == 3
