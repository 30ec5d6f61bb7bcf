"""The import of Apache Kafka's share state."""

from __future__ import annotations

from barnabas.cli.kafka_import.share_groups import image_of
from barnabas.protocol.delivery_state import RecordState
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.share_partition_state import SharePartitionState
from barnabas.storage.format.state_batches import StateBatch


def test_records_on_their_way_to_dead_letters_stay_on_their_way() -> None:
    state = SharePartitionState(
        snapshot_epoch=0,
        state_epoch=1,
        leader_epoch=0,
        start_offset=3,
        delivery_complete_count=0,
        state_batches=[
            StateBatch(3, 3, 1, RecordState.AVAILABLE),
            StateBatch(4, 6, 2, RecordState.ARCHIVING),
        ],
    )
    image = image_of(state, 9, ControlRuns(), 10)
    assert image is not None
    assert [(one.base_offset, one.last_offset, one.state) for one in image.ranges] == [
        (3, 3, RecordState.AVAILABLE),
        (4, 6, RecordState.ARCHIVING),
    ]
    assert (image.end_offset, image.delivery_complete_count) == (7, 0)
