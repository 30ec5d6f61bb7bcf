"""The acknowledgements and ends of transactions at one leader, while others are being recorded."""

from __future__ import annotations

import pytest

from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from barnabas.runtime.completion import Completion
from barnabas.share.leader.leader_transactions import LeaderTransactions
from barnabas.share.partition.acknowledgement import TransactionEnd
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.limits import ShareLimits
from barnabas.share.partition.share_partition import SharePartition
from tests.broker.network.edge_fakes import ManualClock
from tests.share.leader.leading import leading
from tests.share.partition.leader import ACCEPT, RENEW, Leader

PRODUCER = ProducerIdentity(7, 0)
COMMIT = TransactionEnd(PRODUCER, commit=True)


class SlowLeader:
    """Four records that `member-1` holds. Each write ends when the test says so."""

    def __init__(self) -> None:
        self._leader = Leader().produce(4)
        self._leader.fetch()
        self.writes: list[tuple[Decision, Completion[None]]] = []

    @property
    def core(self) -> SharePartition:
        return self._leader.partition

    def limits(self) -> ShareLimits:
        return self._leader.limits

    def record_if_any(self, decision: Decision) -> Completion[None]:
        recorded: Completion[None] = Completion()
        if decision.is_empty:
            recorded.complete(None)
        else:
            self.writes.append((decision, recorded))
        return recorded

    def write(self, error: Exception | None = None) -> None:
        """End the oldest write."""
        decision, recorded = self.writes.pop(0)
        if error is None:
            self._leader.record(decision)
            recorded.complete(None)
        else:
            self.core.abort(decision)
            recorded.fail(error)


def batches(*types: int) -> list[AckBatch]:
    return [AckBatch(0, 3, bytes(types))]


def test_an_end_waits_for_the_acknowledgement_that_is_being_recorded() -> None:
    leader = SlowLeader()
    transactions = LeaderTransactions(leader, ManualClock())
    acknowledged = transactions.acknowledge("member-1", batches(ACCEPT), PRODUCER)
    ended = transactions.end(COMMIT)
    assert (acknowledged.done, ended.done, len(leader.writes)) == (False, False, 1)
    leader.write()
    assert (acknowledged.done, ended.done, len(leader.writes)) == (True, False, 1)
    leader.write()
    assert ended.done
    assert leader.core.spso == 4


def test_an_end_finds_nothing_after_an_acknowledgement_that_failed() -> None:
    leader = SlowLeader()
    transactions = LeaderTransactions(leader, ManualClock())
    acknowledged = transactions.acknowledge("member-1", batches(ACCEPT), PRODUCER)
    ended = transactions.end(COMMIT)
    leader.write(ApiError(ErrorCode.kafka_storage_error))
    assert acknowledged.error is not None
    assert ended.done
    assert ended.error is None
    assert leader.core.spso == 0


def test_a_defect_in_an_end_that_has_waited_is_its_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Decision) -> Completion[None]:
        raise ZeroDivisionError

    leader = SlowLeader()
    transactions = LeaderTransactions(leader, ManualClock())
    transactions.acknowledge("member-1", batches(ACCEPT), PRODUCER)
    ended = transactions.end(COMMIT)
    monkeypatch.setattr(leader, "record_if_any", broken)
    leader.write()
    assert isinstance(ended.error, ZeroDivisionError)


def test_an_end_that_is_asked_for_twice_is_done_when_one_is_recorded() -> None:
    leader = SlowLeader()
    transactions = LeaderTransactions(leader, ManualClock())
    transactions.acknowledge("member-1", batches(ACCEPT), PRODUCER)
    leader.write()
    first, second = transactions.end(COMMIT), transactions.end(COMMIT)
    leader.write(ApiError(ErrorCode.kafka_storage_error))
    assert [one.error is None for one in (first, second)] == [False, True]
    assert [len(leader.writes), leader.core.spso] == [1, 0]
    leader.write()
    second.result()
    assert leader.core.spso == 4


def test_a_renewal_is_refused_before_anything_changes() -> None:
    leader = SlowLeader()
    with pytest.raises(ApiError, match="RENEW"):
        LeaderTransactions(leader, ManualClock()).acknowledge("member-1", batches(RENEW), PRODUCER)
    assert not leader.writes


async def test_a_new_leader_tells_of_pending_acknowledgements() -> None:
    stage = await leading()
    stage.produce(4)
    leader = stage.lead()
    stage.fetch(leader, member_id="member-1")
    leader.transactions.acknowledge("member-1", batches(ACCEPT), PRODUCER)
    assert not stage.with_pending
    stage.share_partitions.forget(leader.key)
    again = stage.lead()
    assert stage.with_pending == [again]
    again.transactions.end(COMMIT)
    assert (again.core.spso, again.core.pending_acknowledgements) == (4, set())
