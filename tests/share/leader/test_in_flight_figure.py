"""The figure of KIP-932's "In-flight records example", led over a real log: the records 2 to 8 are in flight.

offset           0      1      2      3      4      5      6      7      8      9
    state            Archv  Archv  Acqrd  Avail  Acqrd  Acked  Archv  Avail  Avail  Avail
    delivery count                 1      2      1

SPSO is 2 and SPEO is 9, which is the first offset that is not in flight. The KIP draws no count for final
records, and none for 7 and 8. These two are in flight, so a consumer had them: here a released record has its
count.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import RecordState
from barnabas.share.leader.share_partition_leader import NOTHING_TO_RECORD
from tests.share.leader.leading import ACCEPT, RELEASE, Leading, acknowledge, acknowledge_batches, leading

REJECT = 3
AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = RecordState
DRAWN = {
    2: (ACQUIRED, 1),
    3: (AVAILABLE, 2),
    4: (ACQUIRED, 1),
    5: (ACKNOWLEDGED, 1),
    6: (ARCHIVED, 1),
    7: (AVAILABLE, 1),
    8: (AVAILABLE, 1),
}


class Figure(NamedTuple):
    """The share-partition of the figure. The log has its control records behind the data."""

    stage: Leading

    @property
    def bounds(self) -> tuple[int, int]:
        core = self.stage.lead().core
        return core.spso, core.speo

    def states(self) -> dict[int, tuple[RecordState, int]]:
        """State and delivery count of each record in flight."""
        return {
            offset: (run.state, run.delivery_count)
            for batch in self.stage.lead().core.read_batches
            for run in batch.runs
            for offset in range(run.first_offset, run.last_offset + 1)
        }

    def durable(self) -> list[tuple[int, int, RecordState, int]]:
        """The ranges of the log's state: first and last offset, state, delivery count."""
        return [one[:4] for one in self.stage.lead().image.ranges]

    def fetch(self, member_id: str, records_max: int = 500) -> list[tuple[int, int, int]]:
        return list(self.stage.fetch(self.stage.lead(), records_max, member_id=member_id).acquired)

    def acknowledge(self, member_id: str, first_offset: int, last_offset: int, kind: int) -> None:
        ticket = acknowledge(self.stage.lead(), first_offset, last_offset, kind, member_id=member_id)
        assert ticket.done
        assert ticket.error is None


async def with_b_holding_its_records() -> Figure:
    """The figure, except that B still holds 7 and 8."""
    figure = Figure(await leading())
    figure.stage.produce(7, 2, 2)
    assert figure.fetch("A", 7) == [(0, 6, 1)]
    figure.acknowledge("A", 3, 3, RELEASE)
    assert figure.fetch("B", 3) == [(3, 3, 2), (7, 8, 1)]
    figure.acknowledge("B", 3, 3, RELEASE)
    figure.acknowledge("A", 0, 1, ACCEPT)
    figure.acknowledge("A", 5, 5, ACCEPT)
    figure.acknowledge("A", 6, 6, REJECT)
    return figure


@pytest.fixture
async def figure() -> Figure:
    drawn = await with_b_holding_its_records()
    drawn.acknowledge("B", 7, 8, RELEASE)
    return drawn


async def test_the_records_from_2_to_8_are_in_flight_as_they_are_drawn(figure: Figure) -> None:
    assert figure.bounds == (2, 9)
    assert figure.states() == DRAWN
    assert figure.stage.lead().core.in_flight_count == 7


async def test_the_records_below_the_start_offset_cannot_be_changed_any_more(figure: Figure) -> None:
    leader = figure.stage.lead()
    records = figure.stage.records()
    for kind in (ACCEPT, RELEASE, REJECT):
        for member_id in ("A", "B"):
            recorded = acknowledge_batches(leader, member_id, [AckBatch(0, 1, (kind,))])
            assert recorded is NOTHING_TO_RECORD, "ignored, because both records are final"
    assert figure.stage.records() == records
    assert figure.states() == DRAWN


async def test_the_durable_state_is_the_start_offset_and_three_records() -> None:
    """As the KIP lists it: the SPSO, the count of 3, Acknowledged of 5 and Archived of 6. First deliveries
    under way, those of 2, 4, 7 and 8, are not recorded."""
    figure = await with_b_holding_its_records()
    image = figure.stage.lead().image
    assert (image.start_offset, image.end_offset) == (2, 7)
    assert figure.durable() == [
        (2, 2, AVAILABLE, 0),
        (3, 3, AVAILABLE, 2),
        (4, 4, AVAILABLE, 0),
        (5, 5, ACKNOWLEDGED, 1),
        (6, 6, ARCHIVED, 1),
    ]


async def test_the_released_records_7_and_8_are_recorded_with_their_count(figure: Figure) -> None:
    assert figure.durable()[-1] == (7, 8, AVAILABLE, 1)
    assert figure.stage.lead().image.end_offset == 9


async def test_the_next_fetch_begins_with_3_and_goes_on_with_the_records_behind_the_end(
    figure: Figure,
) -> None:
    assert figure.fetch("B") == [(3, 3, 3), (7, 8, 2), (9, 10, 1)]
    assert figure.bounds == (2, 11)


async def test_the_start_offset_stops_at_3_when_2_is_acknowledged(figure: Figure) -> None:
    figure.acknowledge("A", 2, 2, ACCEPT)
    assert figure.bounds == (3, 9)
    assert figure.durable()[0] == (3, 3, AVAILABLE, 2)


async def test_the_start_offset_passes_5_and_6_once_the_records_before_them_are_done(figure: Figure) -> None:
    figure.acknowledge("A", 4, 4, REJECT)
    assert figure.bounds == (2, 9), "2 is still in the way"
    figure.acknowledge("A", 2, 2, ACCEPT)
    assert figure.bounds == (3, 9)
    assert figure.fetch("B", 1) == [(3, 3, 3)]
    figure.acknowledge("B", 3, 3, ACCEPT)
    assert figure.bounds == (7, 9)
    assert figure.durable() == [(7, 8, AVAILABLE, 1)]


async def test_records_2_and_4_are_available_again_when_their_locks_end(figure: Figure) -> None:
    figure.stage.timers.advance(1_000)
    assert figure.states() == DRAWN | {2: (AVAILABLE, 1), 4: (AVAILABLE, 1)}
    assert figure.bounds == (2, 9)


async def test_a_restart_has_2_and_4_available_as_if_they_had_never_been_delivered(figure: Figure) -> None:
    again = Figure(await leading(figure.stage.filesystem.copy()))
    assert again.bounds == (2, 9)
    assert again.durable() == figure.durable()
    assert again.fetch("C") == [(2, 2, 1), (3, 3, 3), (4, 4, 1), (7, 8, 2), (9, 10, 1)]
