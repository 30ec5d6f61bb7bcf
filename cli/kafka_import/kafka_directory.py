"""A data directory of Apache Kafka, read and never changed: whose it is, its metadata, its partitions.

KRaft's format of `log.dirs` (KIP-500, KIP-866). Of a cluster's many directories this is one; a topic of which
partitions lie elsewhere cannot be taken over from here.
"""

from __future__ import annotations

import fcntl
import struct
from collections.abc import Iterator
from pathlib import Path

from barnabas.coordinator.metadata.kafka_metadata import KafkaMetadata, KafkaTopic
from barnabas.coordinator.metadata.snapshot import SnapshotId, parse_snapshot_name
from barnabas.coordinator.metadata.topic_names import METADATA_TOPIC, is_internal
from barnabas.protocol.control_record import ControlType
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_batch import iterate_headers
from barnabas.protocol.records import Record, iterate_records
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.directory.log_directory import LOCK_FILE
from barnabas.storage.directory.meta_properties import FILE_NAME as META_PROPERTIES_FILE
from barnabas.storage.directory.meta_properties import MetaProperties, decode_meta_properties
from barnabas.storage.errors import DirectoryLocked, InvalidDirectory
from barnabas.storage.format.checkpoint_file import CheckpointCorrupt, decode_offsets
from barnabas.storage.segments.segment import LOG_SUFFIX

SET_ASIDE_SUFFIX = ".kafka"
"""Put behind the names of Kafka's own topics where a directory is served in place."""

_LOCK_QUERY = struct.Struct("@hhqqi")
_WRITE_LOCK, _NO_LOCK, _FROM_START = 1, 2, 0


class KafkaDirectory:
    """Raises InvalidDirectory for what is none, DirectoryLocked if Kafka is running on it, and OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.properties = _read_properties(path)
        _check_unused(path)
        self.metadata = self._read_metadata()

    @property
    def topics(self) -> list[KafkaTopic]:
        """Those that people made, by name."""
        topics = (topic for topic in self.metadata.topics.values() if not is_internal(topic.name))
        return sorted(topics, key=lambda topic: topic.name)

    def partition_directory(self, topic: str, partition: int) -> Path:
        """Where the log of a partition is."""
        name = f"{topic}-{partition}"
        aside = self.path / f"{name}{SET_ASIDE_SUFFIX}"
        return aside if aside.exists() else self.path / name

    def check_complete(self) -> None:
        """Every partition of every topic has to be here; InvalidDirectory."""
        for topic in self.topics:
            for partition in sorted(topic.leader_epochs):
                if not self.partition_directory(topic.name, partition).is_dir():
                    raise InvalidDirectory(
                        f"{self.path} lacks partition {partition} of {topic.name}: it lies in another "
                        "directory or on another broker. Move it here with Kafka's reassignment tool first."
                    )

    def offsets(self, checkpoint_file: str) -> dict[tuple[str, int], int]:
        """A checkpoint file's offsets; none if it is missing or damaged."""
        try:
            return decode_offsets((self.path / checkpoint_file).read_bytes())
        except (FileNotFoundError, CheckpointCorrupt):
            return {}

    def records(self, topic: str, partition: int) -> Iterator[Record]:
        """The records of one of Kafka's own topics, oldest first, up to whatever a crash left at the end."""
        for segment in _segments(self.partition_directory(topic, partition)):
            data = segment.read_bytes()
            for position, header in iterate_headers(data):
                if not header.is_control:
                    yield from iterate_records(data, position)

    def committed_records(self, topic: str, partition: int) -> Iterator[Record]:
        """The same, without those of transactions that were aborted, or whose end isn't there.

        Records of a transaction come when it is committed, as to a consumer that asks for committed ones.
        """
        yield from self._replay_transactions(topic, partition, {})

    def open_records(self, topic: str, partition: int) -> dict[ProducerIdentity, list[Record]]:
        """The records of the transactions whose end isn't there, oldest first."""
        pending: dict[int, tuple[ProducerIdentity, list[Record]]] = {}
        for _ in self._replay_transactions(topic, partition, pending):
            """All others are passed over."""
        return dict(pending.values())

    def _replay_transactions(
        self, topic: str, partition: int, pending: dict[int, tuple[ProducerIdentity, list[Record]]]
    ) -> Iterator[Record]:
        """The committed records; `pending` has by producer id what is open where the walk is."""
        for segment in _segments(self.partition_directory(topic, partition)):
            data = segment.read_bytes()
            for position, header in iterate_headers(data):
                if header.is_control:
                    _, ended = pending.pop(header.producer_id, (None, ()))
                    if _is_commit(data, position):
                        yield from ended
                elif header.is_transactional:
                    producer = ProducerIdentity(header.producer_id, header.producer_epoch)
                    _, records = pending.setdefault(header.producer_id, (producer, []))
                    records.extend(iterate_records(data, position))
                else:
                    yield from iterate_records(data, position)

    def partitions_of(self, name: str) -> list[int]:
        """The partitions of one of Kafka's own topics, ascending; none if there is no such topic."""
        topics = self.metadata.topics.values()
        return [one for topic in topics if topic.name == name for one in sorted(topic.leader_epochs)]

    def _read_metadata(self) -> KafkaMetadata:
        directory = self.partition_directory(METADATA_TOPIC, 0)
        if not directory.is_dir():
            raise InvalidDirectory(
                f"{self.path} has no {METADATA_TOPIC}-0: move it here from Kafka's metadata.log.dir first."
            )
        metadata = KafkaMetadata()
        try:
            next_offset = _replay_newest_snapshot(metadata, directory)
            for segment in _segments(directory):
                metadata.replay_log(segment.read_bytes(), next_offset)
        except RecordFormatError as error:
            raise InvalidDirectory(f"{directory} cannot be read: {error}") from error
        return metadata


def _is_commit(data: bytes, position: int) -> bool:
    """Whether a control batch is the marker of a transaction that was committed."""
    keys = [record.key or b"" for record in iterate_records(data, position)]
    return any(key[2:4] == ControlType.COMMIT.to_bytes(2, "big") for key in keys)


def _replay_newest_snapshot(metadata: KafkaMetadata, directory: Path) -> int:
    """Where the log goes on behind the snapshot."""
    names = (parse_snapshot_name(path.name) for path in directory.iterdir())
    newest = max((found for found in names if found is not None), default=SnapshotId(0, 0))
    if newest.end_offset > 0:
        metadata.replay_snapshot((directory / newest.file_name).read_bytes())
    return newest.end_offset


def _segments(directory: Path) -> list[Path]:
    return sorted(path for path in directory.glob(f"*{LOG_SUFFIX}")) if directory.is_dir() else []


def _read_properties(path: Path) -> MetaProperties:
    file = path / META_PROPERTIES_FILE
    if not path.is_dir():
        raise InvalidDirectory(f"There is no directory {path}.")
    if not file.is_file():
        raise InvalidDirectory(
            f"{path} has no {META_PROPERTIES_FILE}: it is no data directory of Apache Kafka."
        )
    return decode_meta_properties(file.read_bytes(), str(file))


def _check_unused(path: Path) -> None:
    """Asks for the lock that a running Kafka holds, without taking it."""
    lock = path / LOCK_FILE
    if not lock.exists():
        return
    with lock.open("rb") as file:
        query = _LOCK_QUERY.pack(_WRITE_LOCK, _FROM_START, 0, 0, 0)
        kind, _, _, _, pid = _LOCK_QUERY.unpack(fcntl.fcntl(file, fcntl.F_GETLK, query))
    if kind != _NO_LOCK:
        raise DirectoryLocked(str(lock), pid)
