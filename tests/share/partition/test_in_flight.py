"""The memory for records in flight: runs that split and join, and the little space that they need."""

from __future__ import annotations

import gc
import sys
from types import FunctionType

from barnabas.protocol.delivery_state import RecordState
from barnabas.share.partition.window import Batch, Run
from tests.share.partition.core import SharePartition, new_window
from tests.share.partition.leader import ACCEPT, ACQUIRED, AVAILABLE, LIMITS, RELEASE, Leader


def footprint(partition: SharePartition) -> tuple[int, int, int]:
    """Batches, runs and bytes (of objects, shallow each) that belong to a share-partition."""
    found: dict[int, object] = {}
    pending: list[object] = [partition]
    while pending:
        one = pending.pop()
        if id(one) not in found and not isinstance(one, type | FunctionType | RecordState | str):
            found[id(one)] = one
            pending += gc.get_referents(one)
    objects = list(found.values())
    return (
        sum(isinstance(one, Batch) for one in objects),
        sum(isinstance(one, Run) for one in objects),
        sum(sys.getsizeof(one) for one in objects),
    )


def test_a_million_released_and_acquired_records_leave_nothing_behind() -> None:
    leader = Leader(limits=LIMITS._replace(record_locks_max=500, delivery_count_max=30_000)).produce(500)
    leader.fetch()
    before = footprint(leader.partition)
    for turn in range(2_000):
        middle = 250 + turn % 100
        leader.acknowledge(middle, 499, RELEASE)
        leader.acknowledge(0, middle - 1, RELEASE)
        assert leader.fetch() == [(0, 499, turn + 2)]
        leader.deltas.clear()
    batches, runs, size_bytes = footprint(leader.partition)
    assert (batches, runs) == before[:2] == (1, 1)
    assert size_bytes <= before[2] + 100, "only a delivery count has grown"


def test_a_million_acknowledged_records_leave_nothing_behind() -> None:
    leader = Leader(limits=LIMITS._replace(record_locks_max=1_000))
    sizes: list[tuple[int, int, int]] = []
    for turn in range(1_000):
        first = turn * 1_000
        leader.log = [(first, first + 999)]
        leader.fetch(records_max=1_000)
        leader.acknowledge(first + 500, first + 999, ACCEPT)
        leader.acknowledge(first, first + 499, ACCEPT)
        leader.deltas.clear()
        if turn % 100 == 99:
            sizes.append(footprint(leader.partition))
    assert {(batches, runs) for batches, runs, _ in sizes} == {(0, 0)}
    assert sizes[-1][2] <= sizes[0][2]
    assert leader.image.ranges == []


def test_a_batch_in_flight_takes_little() -> None:
    leader = Leader(limits=LIMITS._replace(record_locks_max=10_000)).produce(*[5] * 1_000)
    empty = footprint(leader.partition)[2]
    leader.fetch(records_max=5_000, batch_size=1)
    batches, runs, size_bytes = footprint(leader.partition)
    assert (batches, runs) == (1_000, 1_000)
    assert (size_bytes - empty) / 1_000 < 400, "bytes a batch, with its offsets"


def test_single_acknowledgements_in_any_order_join_to_one_run() -> None:
    leader = Leader().produce(100)
    leader.fetch()
    for offset in sorted(range(1, 100), key=lambda offset: offset * 37 % 100):
        leader.acknowledge(offset, offset, ACCEPT)
    assert footprint(leader.partition)[:2] == (1, 2)


def test_two_records_that_are_released_one_by_one_join_to_one_run() -> None:
    leader = Leader().produce(2)
    leader.fetch()
    leader.acknowledge(0, 0, RELEASE)
    leader.acknowledge(1, 1, RELEASE)
    assert footprint(leader.partition)[:2] == (1, 1)


def test_refused_acknowledgements_leave_no_splinters() -> None:
    leader = Leader().produce(100)
    leader.fetch()
    leader.partition.abort(leader.decide(0, 99, *[ACCEPT, RELEASE] * 50))
    assert footprint(leader.partition)[:2] == (1, 1)


def test_isolating_cuts_a_run_on_both_sides_and_joining_mends_it() -> None:
    batch = Batch(0, 9, [Run(0, 9, ACQUIRED, 1, "member", 7, None, 3)])
    middle = batch.isolate(0, 3, 5)
    assert [run.acquired_ms for run in batch.runs] == [3, 3, 3]
    assert [(run.first_offset, run.last_offset) for run in batch.runs] == [(0, 2), (3, 5), (6, 9)]
    assert batch.runs[1] is middle
    assert [batch.run_index(offset) for offset in (0, 2, 3, 5, 6, 9, 10)] == [0, 0, 1, 1, 2, 2, 3]
    batch.join(3, 5)
    assert [(run.first_offset, run.last_offset) for run in batch.runs] == [(0, 9)]


def test_runs_of_other_owners_deadlines_counts_acquisitions_or_with_a_change_pending_stay_apart() -> None:
    runs = [
        Run(0, 0, ACQUIRED, 1, "member-1", 7),
        Run(1, 1, ACQUIRED, 1, "member-2", 7),
        Run(2, 2, ACQUIRED, 1, "member-2", 8),
        Run(3, 3, ACQUIRED, 2, "member-2", 8),
        Run(4, 4, ACQUIRED, 2, "member-2", 8),
        Run(5, 5, ACQUIRED, 2, "member-2", 8),
        Run(6, 6, AVAILABLE, 2),
        Run(7, 7, ACQUIRED, 1, "member-2", 9, None, 5),
        Run(8, 8, ACQUIRED, 1, "member-2", 9, None, 6),
    ]
    runs[4].pending = True
    batch = Batch(0, 8, list(runs))
    batch.join(0, 8)
    assert batch.runs == runs


def test_batches_are_found_by_offset() -> None:
    in_flight = new_window(10)
    for base_offset in (10, 20, 30):
        runs = [Run(base_offset, base_offset + 9, AVAILABLE, 0)]
        in_flight.append(Batch(base_offset, base_offset + 9, runs))
    assert [in_flight.batch_index(offset) for offset in (0, 10, 19, 20, 39, 40)] == [0, 0, 0, 1, 2, 3]
    found = [run.first_offset for _, run in in_flight.runs_between(15, 30)]
    assert found == [10, 20, 30]
    assert list(in_flight.runs_between(40, 50)) == []


def test_a_run_is_found_by_any_of_its_offsets() -> None:
    in_flight = new_window(0)
    runs = [Run(0, 1, ACQUIRED, 1), Run(2, 3, AVAILABLE, 1), Run(4, 9, AVAILABLE, 0)]
    in_flight.append(Batch(0, 9, runs))
    assert [in_flight.run_of(offset)[1].first_offset for offset in range(10)] == [0] * 2 + [2] * 2 + [4] * 6
