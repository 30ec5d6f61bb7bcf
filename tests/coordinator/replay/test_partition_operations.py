"""Operations on one partition: order, replay only after the append, and the state after a failed append."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import pytest

from barnabas.coordinator.replay import steps
from barnabas.coordinator.replay.interfaces import TransactionMarker
from barnabas.coordinator.replay.partition_operations import PartitionOperations
from barnabas.coordinator.replay.steps import Settle, Write, WriteMarker
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from barnabas.runtime.completion import AllDone, Completion
from barnabas.storage.log.appended import Append
from tests.coordinator.simulated_log import SimulatedLog, error_of

_T = TypeVar("_T")
Steps: TypeAlias = steps.Steps[str, _T]
Operation: TypeAlias = steps.Operation[str, _T]
"""Records are words here."""


class Bench:
    def __init__(self, *, max_queued_operations: int = 10, loaded: bool = True) -> None:
        self.log = SimulatedLog()
        self.replayed: list[str] = []
        self.replay_error: Exception | None = None
        self.encode: Callable[[str], Any] = lambda record: (record.encode(), None)
        self.offsets: list[int] = []
        self.operations = PartitionOperations(
            7,
            self.log,
            encode=lambda record: self.encode(record),  # noqa: PLW0108  tests put another in its place
            replay=self._replay,
            max_queued_operations=max_queued_operations,
            transactions=self,
        )
        self.operations.loaded = loaded
        self.started: list[str] = []

    def _replay(self, record: str, offset: int) -> None:
        if self.replay_error is not None:
            raise self.replay_error
        self.replayed.append(record)
        self.offsets.append(offset)

    def replay_pending(self, partition: int, record: str, offset: int, producer_id: int) -> None:
        self._replay(f"{partition}: {record} of {producer_id}", offset)

    def replay_marker(self, partition: int, producer_id: int, *, commit: bool) -> None:
        self.replayed.append(f"{partition}: {'commit' if commit else 'abort'} of {producer_id}")

    def write(self, name: str) -> Operation[str]:
        def operation() -> Steps[str]:
            self.started.append(name)
            yield Write([name])
            return name

        return operation


def test_an_operation_whose_append_ends_at_once_ends_at_once() -> None:
    bench = Bench()
    reply = bench.operations.submit(bench.write("a"))
    assert reply.result() == "a"
    assert bench.replayed == ["a"]
    assert [batch.partition for batch in bench.log.batches] == [7]


def test_replay_and_answer_wait_for_the_append_and_later_operations_for_both() -> None:
    bench = Bench()
    bench.log.held = True
    first, second = bench.operations.submit(bench.write("a")), bench.operations.submit(bench.write("b"))
    assert (first.done, second.done, bench.replayed, bench.started) == (False, False, [], ["a"])
    assert not bench.operations.idle
    bench.log.release()
    assert (first.done, second.done, bench.started) == (True, False, ["a", "b"])
    bench.log.release()
    assert second.result() == "b"
    assert bench.replayed == ["a", "b"]
    assert bench.operations.idle


def test_a_failed_append_replays_nothing_and_the_next_operation_goes_on() -> None:
    bench = Bench()
    bench.log.held = bench.log.failing = True
    first, second = bench.operations.submit(bench.write("a")), bench.operations.submit(bench.write("b"))
    bench.log.release()
    assert error_of(first) is ErrorCode.coordinator_not_available
    bench.log.failing = False
    bench.log.release()
    assert second.result() == "b"
    assert bench.replayed == ["b"]


def test_records_are_replayed_with_their_offsets() -> None:
    bench = Bench()

    def operation() -> Steps[None]:
        yield Write(["a", "b"])
        yield Write(["c"])

    bench.operations.submit(operation)
    bench.operations.submit(bench.write("d"))
    assert list(zip(bench.replayed, bench.offsets, strict=True)) == [("a", 0), ("b", 1), ("c", 2), ("d", 3)]


def test_an_operation_may_see_that_its_append_failed() -> None:
    bench = Bench()
    bench.log.failing = True

    def operation() -> Steps[ErrorCode]:
        try:
            yield Write(["a"])
        except ApiError as error:
            return error.code
        return ErrorCode.none

    assert bench.operations.submit(operation).result() is ErrorCode.coordinator_not_available


def test_settle_waits_for_every_completion_and_accepts_failures() -> None:
    bench = Bench()
    completions = [Completion[None](), Completion[None](), Completion[None]()]
    completions[0].complete(None)

    def operation() -> Steps[int]:
        yield Settle(AllDone(completions))
        return sum(one.error is not None for one in completions)

    reply = bench.operations.submit(operation)
    completions[2].fail(OSError())
    assert not reply.done
    completions[1].complete(None)
    assert reply.result() == 1


def test_a_refusal_is_the_answer_and_a_bug_surfaces_where_the_reply_is_taken() -> None:
    bench = Bench()

    def refuse() -> Steps[None]:
        yield Settle(Completion.of(None))
        raise ApiError(ErrorCode.non_empty_group)

    def stumble() -> Steps[None]:
        yield Settle(Completion.of(None))
        raise ZeroDivisionError

    assert error_of(bench.operations.submit(refuse)) is ErrorCode.non_empty_group
    with pytest.raises(ZeroDivisionError):
        bench.operations.submit(stumble).result()
    assert bench.operations.submit(bench.write("a")).result() == "a"


def test_the_queue_has_a_bound() -> None:
    bench = Bench(max_queued_operations=1)
    bench.log.held = True
    replies = [bench.operations.submit(bench.write(name)) for name in "abc"]
    assert [reply.done for reply in replies] == [False, False, True]
    assert error_of(replies[2]) is ErrorCode.coordinator_not_available


def test_nothing_is_done_before_the_groups_are_loaded() -> None:
    bench = Bench(loaded=False)
    assert not bench.operations.idle
    assert error_of(bench.operations.submit(bench.write("a"))) is ErrorCode.coordinator_load_in_progress
    assert bench.started == []


def test_an_operation_submitted_from_an_answer_comes_after_those_that_wait() -> None:
    bench = Bench()
    bench.log.held = True
    first = bench.operations.submit(bench.write("a"))
    bench.operations.submit(bench.write("b"))
    first.when_done(lambda _: bench.operations.submit(bench.write("c")))
    bench.log.held = False
    bench.log.release()
    assert bench.started == ["a", "b", "c"]


def test_a_log_that_raises_fails_its_operation_and_the_partition_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()

    def stumble(partition: int, records: object, producer: object) -> Append:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(bench.log, "append", stumble)
        broken = bench.operations.submit(bench.write("a"))
    with pytest.raises(ZeroDivisionError):
        broken.result()
    assert bench.operations.submit(bench.write("b")).result() == "b"


@pytest.mark.parametrize("held", [False, True])
def test_a_replay_that_raises_fails_its_operation_and_the_partition_goes_on(held: bool) -> None:
    bench = Bench()
    bench.log.held = held
    bench.replay_error = ZeroDivisionError()
    broken, next_one = bench.operations.submit(bench.write("a")), bench.operations.submit(bench.write("b"))
    if held:
        bench.log.release()
        bench.replay_error = None
        bench.log.release()
        assert next_one.result() == "b"
    with pytest.raises(ZeroDivisionError):
        broken.result()
    bench.replay_error = None
    bench.log.held = False
    assert bench.operations.submit(bench.write("c")).result() == "c"


def test_unloading_refuses_operations_under_way_and_queued_and_replays_nothing() -> None:
    bench = Bench()
    bench.log.held = True
    replies = [bench.operations.submit(bench.write(name)) for name in "ab"]
    bench.operations.unload()
    late = bench.operations.submit(bench.write("c"))
    assert [error_of(reply) for reply in (*replies, late)] == [ErrorCode.coordinator_load_in_progress] * 3
    bench.log.release()
    assert (bench.replayed, bench.started) == ([], ["a"])
    bench.log.held = False
    bench.operations.loaded = True
    assert bench.operations.submit(bench.write("d")).result() == "d"


def test_an_operation_that_ends_in_spite_of_an_unloading_is_answered_once() -> None:
    bench = Bench()

    def operation() -> Steps[None]:
        yield Settle(Completion.of(None))
        bench.operations.unload()

    assert error_of(bench.operations.submit(operation)) is ErrorCode.coordinator_load_in_progress


class TestTransactions:
    PRODUCER = ProducerIdentity(5, 1)

    def marker(self, *, commit: bool) -> Operation[None]:
        def operation() -> Steps[None]:
            yield WriteMarker(TransactionMarker(self.PRODUCER, 3, commit))

        return operation

    def test_records_and_the_end_of_a_transaction_are_replayed_with_their_producer(self) -> None:
        bench = Bench()

        def operation() -> Steps[None]:
            yield Write(["a", "b"], self.PRODUCER)
            yield Write(["c"])

        bench.operations.submit(operation)
        bench.operations.submit(self.marker(commit=True))
        assert bench.replayed == ["7: a of 5", "7: b of 5", "c", "7: commit of 5"]
        assert [(batch.producer, batch.marker is None) for batch in bench.log.batches] == [
            (self.PRODUCER, True),
            (None, True),
            (None, False),
        ]

    def test_an_end_that_the_log_refuses_is_refused_with_its_error(self) -> None:
        bench = Bench()
        bench.log.held = True
        refused = bench.operations.submit(self.marker(commit=False))
        bench.log.waiting.pop().append.fail(ApiError(ErrorCode.transaction_coordinator_fenced))
        assert error_of(refused) is ErrorCode.transaction_coordinator_fenced
        assert bench.replayed == []


@pytest.mark.parametrize("where", ["encoding", "appending", "replaying"])
def test_an_operation_sees_every_failure(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()

    def fail(*_: object) -> Append:
        raise ZeroDivisionError

    if where == "appending":
        monkeypatch.setattr(bench.log, "append", fail)
    elif where == "replaying":
        bench.replay_error = ZeroDivisionError()
    else:
        bench.encode = fail

    def operation() -> Steps[str]:
        try:
            yield Write(["a"])
        except ZeroDivisionError:
            return "told"
        return "not told"

    assert bench.operations.submit(operation).result() == "told"
    assert bench.operations.idle
