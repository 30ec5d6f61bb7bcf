"""Idempotent producers (KIP-98): sequences, duplicates, epochs, snapshots and expiry."""

import pytest

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, BatchHeader
from barnabas.protocol.transaction_marker import TransactionEnd
from barnabas.runtime.moment import Moment
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


EXPIRATION_MS = 1_000
IN_TRANSACTION = ProducerEntry(0, (), 0, 5, 8)


def known_producers(state: ProducerState) -> list[int]:
    return [producer_id for producer_id in range(10) if state.get(producer_id) is not None]


def test_producers_expire_once_they_are_idle_for_long_enough_unless_a_transaction_is_open() -> None:
    state = ProducerState()
    state.update({1: ProducerEntry(0, (), 500), 3: IN_TRANSACTION})
    state.expire(0, EXPIRATION_MS)
    state.update({2: ProducerEntry(0, (), 500)})
    state.expire(1, EXPIRATION_MS)
    state.changed = False
    state.expire(999, EXPIRATION_MS)
    assert (known_producers(state), state.changed) == ([1, 2, 3], False)
    state.expire(1_000, EXPIRATION_MS)
    assert (known_producers(state), state.changed) == ([2, 3], True)


def test_an_append_begins_the_idle_time_of_its_producer_anew() -> None:
    state = ProducerState()
    for now_ms in range(0, 5_000, 500):
        state.update({1: ProducerEntry(0, (), 500)})
        state.expire(now_ms, EXPIRATION_MS)
        assert known_producers(state) == [1]


@pytest.mark.parametrize("timestamp_ms", [0, 1_700_000_000_000])
def test_the_timestamps_of_records_do_not_count_while_the_process_lives(timestamp_ms: int) -> None:
    """They are the producers' times: a copy of old records has old ones."""
    state = ProducerState()
    state.update({1: ProducerEntry(0, (), timestamp_ms)})
    state.expire(5_000, EXPIRATION_MS)
    assert known_producers(state) == [1]
    state.expire(6_000, EXPIRATION_MS)
    assert known_producers(state) == []


def test_the_timestamps_tell_how_long_producers_were_idle_when_they_are_loaded() -> None:
    state = ProducerState()
    entries = {1: ProducerEntry(0, (), 9_000), 2: ProducerEntry(0, (), 9_001), 3: IN_TRANSACTION}
    state.update(entries | {4: ProducerEntry(0, (), 99_000)})
    state.expire_loaded(Moment(now_ms=50, wall_ms=10_000), EXPIRATION_MS)
    assert known_producers(state) == [2, 3, 4]
    state.expire(51, EXPIRATION_MS)
    assert known_producers(state) == [3, 4]
    state.expire(1_049, EXPIRATION_MS)
    assert known_producers(state) == [3, 4], "one from the future counts as new"
    state.expire(1_050, EXPIRATION_MS)
    assert known_producers(state) == [3]
