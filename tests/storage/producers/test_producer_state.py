"""Idempotent producers (KIP-98): sequences, duplicates, epochs, snapshots and expiry."""

import pytest

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, BatchHeader
from barnabas.protocol.transaction_marker import TransactionEnd
from barnabas.storage.producers.producer_state import (
    ProducerEntry,
    ProducerState,
    check_sequence,
    entry_after,
    find_duplicate,
    sequence_plus,
)

LAST_SEQUENCE = 2**31 - 1


def header(sequence: int, *, count: int = 1, producer_epoch: int = 0, attributes: int = 0) -> BatchHeader:
    return BatchHeader(0, 0, 0, 2, 0, attributes, count - 1, 0, 77, 9, producer_epoch, sequence, count)


def known(*batches: BatchHeader) -> ProducerEntry:
    entry, offset = None, 100
    for batch in batches:
        entry = entry_after(entry, batch, offset, 77)
        offset += batch.last_offset_delta + 1
    assert entry is not None
    return entry


@pytest.mark.parametrize(
    ("entry", "batch", "code"),
    [
        (None, header(0), None),
        (None, header(17), None),
        (known(header(0, count=3)), header(3), None),
        (known(header(0, count=3)), header(2), ErrorCode.out_of_order_sequence_number),
        (known(header(0, count=3)), header(4), ErrorCode.out_of_order_sequence_number),
        (known(header(0)), header(0, producer_epoch=1), None),
        (known(header(0)), header(1, producer_epoch=1), ErrorCode.out_of_order_sequence_number),
        (known(header(0, producer_epoch=2)), header(1, producer_epoch=1), ErrorCode.invalid_producer_epoch),
        (known(header(LAST_SEQUENCE)), header(0), None),
        (known(header(LAST_SEQUENCE - 1, count=2)), header(0), None),
        (known(header(LAST_SEQUENCE, count=2)), header(1), None),
        (ProducerEntry(4, (), 0), header(0, producer_epoch=4), None),
        (
            ProducerEntry(4, (), 0),
            header(1, producer_epoch=4),
            ErrorCode.out_of_order_sequence_number,
        ),
        (ProducerEntry(-1, (), 0), header(8), None),
    ],
)
def test_only_the_next_batch_may_follow(
    entry: ProducerEntry | None, batch: BatchHeader, code: ErrorCode | None
) -> None:
    if code is None:
        check_sequence(entry, batch)
        return
    with pytest.raises(ApiError) as refused:
        check_sequence(entry, batch)
    assert refused.value.code is code


def test_the_last_five_batches_are_recognised() -> None:
    batches = [header(sequence) for sequence in range(7)]
    entry = known(*batches)
    found = [find_duplicate(entry, batch) for batch in batches]
    assert [batch and batch.base_offset for batch in found] == [None, None, 102, 103, 104, 105, 106]


@pytest.mark.parametrize("batch", [header(0, count=3), header(1), header(0, count=2, producer_epoch=1)])
def test_only_the_same_range_in_the_same_epoch_is_a_duplicate(batch: BatchHeader) -> None:
    assert find_duplicate(known(header(0, count=2)), batch) is None


def test_new_epoch_forgets_the_batches_of_the_old() -> None:
    entry = known(header(0), header(0, producer_epoch=1))
    assert [batch.base_offset for batch in entry.batches] == [101]


def test_sequences_begin_again_after_the_last() -> None:
    assert [sequence_plus(LAST_SEQUENCE, count) for count in (0, 1, 2)] == [LAST_SEQUENCE, 0, 1]


def test_snapshot_keeps_each_producers_last_batch() -> None:
    state = ProducerState()
    state.update({9: known(header(LAST_SEQUENCE, count=4), header(3, count=2)), 10: ProducerEntry(3, (), 5)})
    restored = ProducerState.from_snapshot(state.to_snapshot())
    entry = restored.get(9)
    assert entry is not None
    assert entry.batches == known(header(LAST_SEQUENCE, count=4), header(3, count=2)).batches[-1:]
    assert restored.get(10) == ProducerEntry(3, (), 5)
    assert not restored.changed


def test_a_snapshot_keeps_a_batch_around_the_last_sequence() -> None:
    state = ProducerState()
    state.update({9: known(header(LAST_SEQUENCE - 1, count=4))})
    assert ProducerState.from_snapshot(state.to_snapshot()).get(9) == state.get(9)


def test_replayed_batches_build_the_same_state() -> None:
    state = ProducerState()
    state.replay(header(0, count=2)._replace(base_offset=100))
    state.replay(header(2)._replace(base_offset=102))
    state.replay(header(2)._replace(producer_id=-1))
    assert state.get(9) == known(header(0, count=2), header(2))
    assert (len(state), state.changed) == (1, True)


@pytest.mark.parametrize(("marker_epoch", "kept"), [(0, 1), (1, 0)])
def test_transaction_marker_raises_the_epoch(marker_epoch: int, kept: int) -> None:
    state = ProducerState()
    state.replay(header(0))
    marker = header(-1, producer_epoch=marker_epoch, attributes=CONTROL_FLAG | TRANSACTIONAL_FLAG)
    state.replay(marker, TransactionEnd(commit=True, coordinator_epoch=3))
    entry = state.get(9)
    assert entry is not None
    assert (entry.producer_epoch, len(entry.batches), entry.coordinator_epoch) == (marker_epoch, kept, 3)


def test_idle_producers_expire_unless_a_transaction_is_open() -> None:
    state = ProducerState()
    state.update(
        {1: ProducerEntry(0, (), 1000), 2: ProducerEntry(0, (), 1001), 3: ProducerEntry(0, (), 0, 5, 8)}
    )
    state.changed = False
    state.expire(2000, 1001)
    assert (len(state), state.changed) == (3, False)
    state.expire(2000, 1000)
    assert [state.get(producer_id) is not None for producer_id in (1, 2, 3)] == [False, True, True]
    assert state.changed
