from __future__ import annotations

import asyncio
import threading

import pytest

from penstock.client.produce.delivery import Delivery, DeliveryOutcome, FirstFailure
from penstock.errors import NetworkError, RequestTimeoutError
from penstock.model import RecordMetadata


def test_a_settled_batch_gives_each_record_its_offset() -> None:
    outcome = DeliveryOutcome("t", 3)
    delivery = Delivery(outcome, 2, 777)
    assert not delivery.done()
    assert "under way" in repr(delivery)
    outcome.succeed(100, 5)
    assert delivery.done()
    assert delivery.result(0) == RecordMetadata("t", 3, 102, 777)
    assert delivery.exception(0) is None
    assert "102" in repr(delivery)


def test_log_append_time_counts_more_than_the_producers() -> None:
    outcome = DeliveryOutcome("t", 0)
    outcome.succeed(0, 1, 555)
    assert Delivery(outcome, 0, 777).result(0).timestamp == 555


def test_without_acknowledgement_there_is_no_offset() -> None:
    outcome = DeliveryOutcome("t", 0)
    outcome.succeed(-1, 5)
    assert Delivery(outcome, 3, 1).result(0).offset == -1


def test_a_failure_is_raised() -> None:
    outcome = DeliveryOutcome("t", 0)
    outcome.fail(NetworkError("gone"))
    delivery = Delivery(outcome, 0, 1)
    with pytest.raises(NetworkError, match="gone"):
        delivery.result(0)
    assert str(delivery.exception(0)) == "gone"


def test_waiting_ends_with_the_timeout() -> None:
    with pytest.raises(RequestTimeoutError, match=r"t-0 was not acknowledged within 0\.01 s"):
        Delivery(DeliveryOutcome("t", 0), 0, 1).result(0.01)


def test_other_threads_are_woken() -> None:
    outcome = DeliveryOutcome("t", 0)
    found: list[int] = []
    about_to_wait = threading.Barrier(5)

    def wait(index: int) -> None:
        about_to_wait.wait()
        found.append(Delivery(outcome, index, 1).result(60).offset)

    threads = [threading.Thread(target=wait, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    about_to_wait.wait()
    outcome.succeed(10, 4)
    for thread in threads:
        thread.join(60)
    assert sorted(found) == [10, 11, 12, 13]


def test_callbacks_are_called_once_each_before_and_after() -> None:
    outcome = DeliveryOutcome("t", 0)
    calls: list[int] = []
    Delivery(outcome, 0, 1).add_done_callback(lambda d: calls.append(d.result(0).offset))
    outcome.succeed(7, 2)
    Delivery(outcome, 1, 1).add_done_callback(lambda d: calls.append(d.result(0).offset))
    assert calls == [7, 8]


def test_awaiting_works_on_any_loop_and_is_settled_from_another_thread() -> None:
    outcome = DeliveryOutcome("t", 0)

    async def wait() -> int:
        threading.Timer(0.02, lambda: outcome.succeed(5, 1)).start()
        return (await Delivery(outcome, 0, 1)).offset

    assert asyncio.run(wait()) == 5


def test_a_split_batch_passes_its_records_on() -> None:
    whole, first, second = DeliveryOutcome("t", 0), DeliveryOutcome("t", 0), DeliveryOutcome("t", 0)
    early = Delivery(whole, 1, 1)
    late = Delivery(whole, 3, 1)
    calls: list[str] = []
    late.add_done_callback(lambda d: calls.append("late"))
    whole.split([(0, first), (2, second)])
    first.succeed(10, 2)
    assert early.result(0).offset == 11
    assert not late.done()
    assert calls == []
    # A part may be split again.
    third, fourth = DeliveryOutcome("t", 0), DeliveryOutcome("t", 0)
    second.split([(0, third), (1, fourth)])
    assert whole.leaves() == [first, third, fourth]
    fourth.succeed(20, 1)
    assert calls == ["late"]
    assert late.result(0).offset == 20
    assert not whole.wait_blocking(0.01)
    third.fail(NetworkError("gone"))
    assert whole.wait_blocking(0)
    assert asyncio.run(whole.wait()) is None


def test_whoever_awaits_a_batch_survives_its_split() -> None:
    whole, first, second = DeliveryOutcome("t", 0), DeliveryOutcome("t", 0), DeliveryOutcome("t", 0)

    async def scenario() -> int:
        waiting = asyncio.ensure_future(_result(Delivery(whole, 1, 1)))
        await asyncio.sleep(0)
        whole.split([(0, first), (1, second)])
        first.succeed(3, 1)
        await asyncio.sleep(0)
        second.succeed(9, 1)
        return await waiting

    assert asyncio.run(scenario()) == 9


async def _result(delivery: Delivery) -> int:
    return (await delivery).offset


@pytest.mark.parametrize("is_split", [False, True])
def test_the_first_failure_of_many_batches_is_kept_and_each_is_watched_once(is_split: bool) -> None:
    good, bad, later = (DeliveryOutcome("t", number) for number in range(3))
    failure = FirstFailure()
    for index in range(3):
        for outcome in (good, bad, later):
            failure.watch(Delivery(outcome, index, 0))
    assert [len(outcome._listeners) for outcome in (good, bad, later)] == [1, 1, 1]
    good.succeed(0, 3)
    assert failure.error is None
    if is_split:
        first, second = DeliveryOutcome("t", 1), DeliveryOutcome("t", 1)
        bad.split([(0, first), (2, second)])
        first.succeed(0, 2)
        assert failure.error is None
        bad = second
        assert bad.is_watched
    bad.fail(NetworkError("one"))
    later.fail(NetworkError("two"))
    assert str(failure.error) == "one"


def test_a_batch_that_had_failed_before_it_is_watched_counts() -> None:
    outcome = DeliveryOutcome("t", 0)
    outcome.fail(NetworkError("gone"))
    failure = FirstFailure()
    failure.watch(Delivery(outcome, 0, 0))
    assert str(failure.error) == "gone"
