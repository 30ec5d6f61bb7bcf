"""The positions of share groups, from the control records in a data directory of Barnabas.

A broker may run on it: the files have all that it has confirmed. The broker's own code replays each group's
newest checkpoint and the deltas that chain to it; older records, which the cleaner may have removed, are
skipped. A data directory of Apache Kafka has no such records: its broker gives the state (`share_groups`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.export.manifest import InFlight, SharePosition
from barnabas.pipeline.export.share_groups import STATE_NAMES
from barnabas.pipeline.log_source.control_batches import control_records
from barnabas.pipeline.log_source.directories import PartitionFolder, find_partitions
from barnabas.pipeline.log_source.slicing import LogBounds, slice_partition
from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta, decode_control_record
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.share_image import ShareStateImage

SLICE_BYTES: Final = 1 << 40
"""A segment is read as one slice, because only its control records are read."""


def read_positions_in_logs(
    directories: Sequence[str], topics: Collection[str]
) -> dict[tuple[str, str, int], SharePosition]:
    """The positions by group, topic and partition. Raises `LogFileError`; `PipelineError` for a cut chain."""
    found: dict[tuple[str, str, int], SharePosition] = {}
    # Not by name: a topic without records has no folder yet.
    folders = [folder for folder in find_partitions(directories, None) if folder.topic in topics]
    for folder in folders:
        for group_id, image in _replay(folder).items():
            if not image.deleted and image.start_offset >= 0:
                position = SharePosition(
                    folder.topic, folder.partition, image.start_offset, tuple(_in_flight(image))
                )
                found[group_id, folder.topic, folder.partition] = position
    return found


def _replay(folder: PartitionFolder) -> dict[str, ShareStateImage]:
    """By group, the image from its newest checkpoint and its deltas."""
    images: dict[str, ShareStateImage] = {}
    for piece in slice_partition(folder, LogBounds(), SLICE_BYTES):
        for base_offset, key, value in control_records(piece):
            record = decode_control_record(key, value)
            if isinstance(record, ShareCheckpoint):
                image = images.setdefault(record.group_id, ShareStateImage(ControlRuns()))
                image.replay_checkpoint(record, base_offset)
            elif isinstance(record, ShareDelta):
                _replay_delta(folder, images.get(record.group_id), record, base_offset)
    return images


def _replay_delta(
    folder: PartitionFolder, image: ShareStateImage | None, delta: ShareDelta, offset: int
) -> None:
    if image is None or delta.checkpoint_epoch < image.checkpoint_epoch:
        return
    if delta.checkpoint_epoch != image.checkpoint_epoch or delta.back_offset != image.last_control_offset:
        raise PipelineError(
            f"{folder.path}: the state of group {delta.group_id} at offset {offset} follows on "
            f"{delta.back_offset}, which is missing; barnabas log verify shows details."
        )
    image.replay_delta(delta, offset)


def _in_flight(image: ShareStateImage) -> Iterator[InFlight]:
    for state_range in image.ranges:
        yield InFlight(
            state_range.base_offset,
            state_range.last_offset,
            STATE_NAMES[int(state_range.state)],
            state_range.delivery_count,
        )
