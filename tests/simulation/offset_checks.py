"""A check inside the broker: the offsets of a group in the coordinator's memory are those in its log."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.broker.node.broker import Broker
from barnabas.coordinator.group.records import decode_record, is_offset, is_offset_range
from barnabas.coordinator.metadata.topic_names import OFFSETS_TOPIC
from barnabas.coordinator.offsets.committed_offset import OffsetKey
from barnabas.coordinator.offsets.committed_offsets import CommittedOffsets
from barnabas.protocol.record_batch import iterate_headers
from barnabas.protocol.records import iterate_records
from barnabas.protocol.transaction_marker import read_marker_batch
from barnabas.runtime.moment import written_at
from barnabas.storage.errors import StorageError
from barnabas.storage.log.partition_log import PartitionLog
from tests.simulation.model import Violation

# pyright: reportPrivateUsage=false

_READ_BYTES = 1 << 30


def check_offsets(broker: Broker, group_id: str) -> None:
    """Replays the group's partition of the log, unless an append is under way."""
    operations = broker.groups.operations.of_key(group_id)
    topic = broker.metadata.image.topics_by_name.get(OFFSETS_TOPIC)
    partition = broker.groups.partition_of(group_id)
    log = None if topic is None else broker.logs.get(topic, partition)
    if log is None or log.offline is not None or not operations.idle:
        return
    replayed = CommittedOffsets(broker.groups.partition_of)
    try:
        _replay(replayed, partition, log)
    except StorageError:
        return  # Reads may fail now; nothing may be missing later.
    live = broker.groups.offsets._offsets
    keys = {*_keys(live, group_id), *_keys(replayed, group_id)}
    for key in sorted(keys):
        in_memory, in_log = _of(live, key), _of(replayed, key)
        if in_memory != in_log:
            raise Violation(f"{key}: the coordinator has {in_memory}, its log {in_log}")


def _keys(offsets: CommittedOffsets, group_id: str) -> Iterator[OffsetKey]:
    for key, _ in offsets.keys_of_group(group_id):
        yield key
    for by_key in offsets.individual._pending.values():
        yield from (key for key in by_key if key.group_id == group_id)


def _of(offsets: CommittedOffsets, key: OffsetKey) -> tuple[object, ...]:
    """The committed offset, the ranges in force, and those of open transactions."""
    committed, found = offsets.find(key), offsets.individual.find(key)
    pending = {(one.added, one.member_id) for one in offsets.individual.pending(key)}
    ranges = [] if found is None else list(found.ranges)
    return None if committed is None else committed.offset, ranges, sorted(pending)


_ANY_TIME = written_at(0)
"""The times of commits decide nothing here."""


def _replay(offsets: CommittedOffsets, partition: int, log: PartitionLog) -> None:
    offset = log.log_start_offset
    while data := b"".join(log.read(offset, bytes_max=_READ_BYTES).buffers):
        for position, header in iterate_headers(data):
            offset = header.last_offset + 1
            if header.is_control:
                end = read_marker_batch(data[position : position + header.size_bytes], header)
                if end is not None:
                    offsets.end_transaction(partition, header.producer_id, commit=end.commit)
                continue
            producer_id = header.producer_id if header.is_transactional else -1
            for record in iterate_records(data, position):
                _replay_record(offsets, partition, producer_id, record.key, record.value, record.offset)


def _replay_record(
    offsets: CommittedOffsets,
    partition: int,
    producer_id: int,
    key: bytes | None,
    value: bytes | None,
    log_offset: int,
) -> None:
    decoded = None if key is None else decode_record(key, value)
    if decoded is None:
        return
    is_pending = producer_id >= 0 and decoded[1] is not None
    if is_offset(decoded):
        if is_pending and decoded[1] is not None:
            offsets.replay_pending(partition, producer_id, *decoded, log_offset, _ANY_TIME)  # type: ignore[arg-type]
        else:
            offsets.replay(*decoded, log_offset, _ANY_TIME)
    elif is_offset_range(decoded):
        if is_pending and decoded[1] is not None:
            offsets.replay_pending_range(partition, producer_id, *decoded, log_offset, _ANY_TIME)  # type: ignore[arg-type]
        else:
            offsets.replay_range(*decoded, _ANY_TIME)
