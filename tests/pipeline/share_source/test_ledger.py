"""Records that are done and not confirmed."""

from uuid import UUID

import pytest

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source.ledger import LEDGER_RANGES_MAX, UNKNOWN_OFFSET, DoneLedger
from barnabas.pipeline.share_source.ranges import AcquiredRange, OffsetRange
from barnabas.protocol.identity import TopicIdPartition

ORDERS = TopicIdPartition(UUID(int=1), 0)
PAYMENTS = TopicIdPartition(UUID(int=2), 0)


def test_a_redelivered_range_is_cut_into_new_done_and_rejected_parts() -> None:
    ledger = DoneLedger()
    ledger.note_done(ORDERS, [OffsetRange(10, 19)])
    ledger.note_rejected(ORDERS, [OffsetRange(25, 29)])
    found = ledger.sort(ORDERS, [AcquiredRange(5, 34, 2)])
    assert found.accept == [(10, 19, 2)]
    assert found.reject == [(25, 29, 2)]
    assert found.new == [(5, 9, 2), (20, 24, 2), (30, 34, 2)]
    assert ledger.sort(PAYMENTS, [AcquiredRange(5, 34, 2)]).new == [(5, 34, 2)]


def test_confirmed_ranges_leave_the_ledger() -> None:
    ledger = DoneLedger({ORDERS: [OffsetRange(0, 9)]}, {ORDERS: [OffsetRange(10, 19)]})
    ledger.confirm(ORDERS, [OffsetRange(5, 12)])
    assert ledger.done == {ORDERS: [(0, 4)]}
    assert ledger.rejected == {ORDERS: [(13, 19)]}
    ledger.confirm(ORDERS, [OffsetRange(0, 19)])
    assert ledger.partitions == set()


def test_ranges_below_the_start_offset_leave_the_ledger() -> None:
    ledger = DoneLedger({ORDERS: [OffsetRange(0, 9), OffsetRange(20, 29)]})
    assert not ledger.note_start_offset(ORDERS, 25)
    assert ledger.done == {ORDERS: [(25, 29)]}
    assert not ledger.note_start_offset(ORDERS, 30)
    assert ledger.range_count == 0


@pytest.mark.parametrize(
    ("before", "after", "is_forgotten"),
    [
        pytest.param(20, 19, True, id="went back"),
        pytest.param(20, UNKNOWN_OFFSET, True, id="was deleted"),
        pytest.param(20, 20, False, id="stayed"),
        pytest.param(UNKNOWN_OFFSET, UNKNOWN_OFFSET, False, id="was never there"),
        pytest.param(UNKNOWN_OFFSET, 20, False, id="is there now"),
    ],
)
def test_a_start_offset_that_goes_back_makes_everything_new_again(
    before: int, after: int, is_forgotten: bool
) -> None:
    ledger = DoneLedger({ORDERS: [OffsetRange(20, 29)]}, start_offsets={ORDERS: before})
    assert ledger.note_start_offset(ORDERS, after) == is_forgotten
    assert (ledger.done == {}) == is_forgotten
    assert ledger.start_offsets == {ORDERS: after}


def test_batches_get_smaller_as_the_ledger_fills_but_never_stop() -> None:
    ledger = DoneLedger()
    assert ledger.room == LEDGER_RANGES_MAX
    ledger.note_done(ORDERS, [OffsetRange(2 * n, 2 * n) for n in range(LEDGER_RANGES_MAX - 5)])
    assert ledger.room == 5
    ledger.note_done(PAYMENTS, [OffsetRange(2 * n, 2 * n) for n in range(100)])
    assert ledger.room == 1


def test_a_ledger_that_never_shrinks_stops_the_query() -> None:
    ledger = DoneLedger()
    ledger.note_done(ORDERS, [OffsetRange(2 * n, 2 * n) for n in range(2 * LEDGER_RANGES_MAX)])
    ledger.check_bound()
    ledger.note_rejected(PAYMENTS, [OffsetRange(0, 0)])
    with pytest.raises(PipelineError, match="has not confirmed"):
        ledger.check_bound()
