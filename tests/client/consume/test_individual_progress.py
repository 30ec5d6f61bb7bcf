"""The offsets of a partition with individual commits: compared with sets of numbers, and with any batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.consume.fetched_slice import FetchedSlice
from barnabas.client.consume.individual_progress import IndividualProgress
from barnabas.client.consume.record_filter import RecordFilter
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.committed_ranges import CommittedRanges, OffsetRange
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_keys import key_hash
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, HashRange, even_ranges
from barnabas.protocol.records import Record, encode_records
from barnabas.protocol.transaction_marker import TransactionEnd, build_marker_batch

OFFSETS = st.integers(0, 20)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "deliver",
                "hold",
                "mark",
                "settle",
                "empty",
                "seek",
                "back",
                "commit",
                "refuse",
                "take",
                "confirm",
            ]
        ),
        OFFSETS,
        OFFSETS,
    ),
    max_size=80,
)


class Delivered(NamedTuple):
    offset: int


def new_progress(
    hashes: HashRange = ALL_HASHES, committed: Iterable[tuple[int, int]] = ()
) -> IndividualProgress:
    progress = IndividualProgress(hashes, lambda: None)
    progress.begin(CommittedRanges(-1, committed))
    return progress


def offsets_of(ranges: Iterable[tuple[int, int]]) -> set[int]:
    return {offset for first, last in ranges for offset in range(first, last + 1)}


class Model:
    """The same with a set of numbers for each state."""

    def __init__(self) -> None:
        self.delivered = set[int]()
        self.held = set[int]()
        self.processed = set[int]()
        self.committed = set[int]()

    def process(self, offsets: set[int]) -> None:
        self.processed |= offsets & self.delivered
        self.delivered -= offsets
        self.held -= offsets

    def forget_from(self, offset: int) -> None:
        for some in (self.delivered, self.held, self.processed):
            some -= {one for one in some if one >= offset}


@given(STEPS)
def test_each_offset_is_committed_after_it_was_processed_and_never_lost(
    steps: list[tuple[str, int, int]],
) -> None:
    progress, model = new_progress(), Model()
    in_flight, era, is_current = list[OffsetRange](), 0, True
    for step, first, last in steps:
        named = set(range(first, last + 1))
        if step == "deliver" and first not in model.delivered:
            progress.deliver([Delivered(first)], first + 1)
            model.delivered.add(first)
        elif step == "hold":
            progress.hold(first)
            model.held |= {first} & model.delivered
        elif step == "mark":
            progress.process([(first, last)])
            model.process(named)
        elif step == "settle":
            progress.settle()
            model.process(model.delivered - model.held)
        elif step == "empty":
            progress.note_empty(first, last)
            lowest = next((one for one in range(first, last + 1) if one not in model.committed), None)
            model.processed |= set[int]() if lowest is None else set(range(lowest, last + 1))
        elif step == "seek":
            progress.seek(first)
            model.forget_from(first)
            is_current = False
        elif step == "back":
            progress.forget_uncommitted()
            model.forget_from(0)
            progress.begin(CommittedRanges(-1, [(one, one) for one in model.committed]))
            is_current = False
        elif step == "commit" and not in_flight:
            in_flight, era, is_current = progress.take_processed(), progress.era, True
            assert offsets_of(in_flight) == model.processed
            model.processed = set[int]()
        elif step == "confirm":
            progress.note_committed_ranges(in_flight)
            model.committed |= offsets_of(in_flight)
            in_flight = []
        elif step == "refuse":
            progress.give_back(in_flight, era)
            model.processed |= offsets_of(in_flight) if is_current else set[int]()
            in_flight = []
        assert progress.delivered_count == len(CommittedRanges(-2, [(one, one) for one in model.delivered]))
        assert all(progress.wants(one, None) == (one not in model.committed) for one in range(25))
    assert offsets_of(progress.take_processed()) == model.processed


def test_nothing_of_a_partition_that_was_given_up_is_committed() -> None:
    progress = new_progress()
    progress.deliver([Delivered(3), Delivered(4)], 5)
    progress.mark_processed(3)
    in_flight, era = progress.take_processed(), progress.era
    progress.give_up()
    progress.mark_processed(4)
    progress.settle()
    progress.give_back(in_flight, era)
    assert progress.take_processed() == []


def test_ranges_that_are_confirmed_while_the_group_is_asked_again_count() -> None:
    progress = new_progress()
    progress.deliver([Delivered(0)], 1)
    progress.settle()
    in_flight = progress.take_processed()
    progress.forget_uncommitted()
    progress.note_committed_ranges(in_flight)
    assert progress.begin(CommittedRanges(-1)) == 1


def test_offsets_before_the_start_of_the_log_hold_no_record() -> None:
    progress = new_progress(committed=[(0, 4), (8, 9)])
    progress.note_log_start(12)
    assert progress.take_processed() == [(5, 11)]
    progress.note_log_start(3)
    assert progress.take_processed() == []


Part = list[bytes | None] | None
"""A marker (None), or records with these keys; a key of None stands for an offset without a record."""

KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"e"])
PARTS = st.lists(
    st.one_of(st.none(), st.lists(st.one_of(st.none(), KEYS), min_size=1, max_size=5)), min_size=1, max_size=8
)


class Log(NamedTuple):
    batches: bytes
    keys: dict[int, bytes]
    """The key of each record, by its offset."""
    end: int
    """Behind the last batch."""


def log_of(parts: list[Part]) -> Log:
    batches, keys, offset, end = b"", dict[int, bytes](), 0, 0
    for part in parts:
        if part is None:
            committed = TransactionEnd(True, 0)
            producer = ProducerIdentity(7, 0)
            batches += build_marker_batch(offset, producer, committed, leader_epoch=0, timestamp_ms=7)
            offset = end = offset + 1
            continue
        records = [Record(offset + at, 7, key, b"") for at, key in enumerate(part) if key is not None]
        if records:
            batches += encode_records(records)
            keys.update((record.offset, record.key or b"") for record in records)
            end = records[-1].offset + 1
        offset += len(part)
    return Log(batches, keys, end)


@given(PARTS, st.lists(st.tuples(OFFSETS, OFFSETS), max_size=3), st.integers(1, 3), st.data())
def test_sharers_together_deliver_each_record_once_and_commit_every_offset(
    parts: list[Part], ranges: list[tuple[int, int]], sharer_count: int, data: st.DataObject
) -> None:
    log = log_of(parts)
    before, group, delivered = CommittedRanges(-1, ranges), CommittedRanges(-1, ranges), list[int]()
    for hashes in even_ranges(sharer_count):
        own = {one for one, key in log.keys.items() if hashes.has_record(key_hash(key), one)}
        progress = IndividualProgress(hashes, lambda: None)
        position = progress.begin(CommittedRanges(-1, ranges))
        record_filter = RecordFilter(progress, position, is_complete=progress.sees_all)
        name = TopicPartition("t", 0)
        fetched = FetchedSlice[object, object](name, memoryview(log.batches), None, None, record_filter)
        while not fetched.is_exhausted:
            records, position = fetched.take(position, data.draw(st.integers(1, 4)))
            progress.deliver(records, position)
            delivered += [record.offset for record in records]
        progress.settle()
        committed = progress.take_processed()
        of_others = {one for one in log.keys if one not in own and one not in before}
        assert not offsets_of(committed) & of_others
        group.commit(committed)
    assert sorted(delivered) == [one for one in sorted(log.keys) if one not in before]
    assert group.first_uncommitted(0) >= log.end, "no offset holds the stable offset back"
