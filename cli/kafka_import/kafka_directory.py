"""Reads a data directory of Apache Kafka without changing it: its properties, metadata and partitions.

The format is that of KRaft's `log.dirs` (KIP-500, KIP-866). A cluster may have several directories; topics
with partitions in another one cannot be imported.
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
from barnabas.storage.directory.checkpoints import LOG_START_FILE
from barnabas.storage.directory.log_directory import LOCK_FILE
from barnabas.storage.directory.meta_properties import FILE_NAME as META_PROPERTIES_FILE
from barnabas.storage.directory.meta_properties import MetaProperties, decode_meta_properties
from barnabas.storage.errors import DirectoryLocked, InvalidDirectory
from barnabas.storage.format.checkpoint_file import CheckpointCorrupt, decode_offsets
from barnabas.storage.segments.segment import LOG_SUFFIX

SET_ASIDE_SUFFIX = ".kafka"
"""The suffix of Kafka's internal topics after an import in place."""

_LOCK_QUERY = struct.Struct("@hhqqi")
_WRITE_LOCK, _NO_LOCK, _FROM_START = 1, 2, 0


class KafkaDirectory:
    """Raises InvalidDirectory for any other directory, DirectoryLocked if Kafka is running on it, and
    OSError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.properties = _read_properties(path)
        _check_unused(path)
        self.metadata = self._read_metadata()

    @property
    def topics(self) -> list[KafkaTopic]:
        """The topics of users, by name; internal topics are omitted."""
        topics = (topic for topic in self.metadata.topics.values() if not is_internal(topic.name))
        return sorted(topics, key=lambda topic: topic.name)

    def partition_directory(self, topic: str, partition: int) -> Path:
        """The directory of a partition's log."""
        name = f"{topic}-{partition}"
        aside = self.path / f"{name}{SET_ASIDE_SUFFIX}"
        return aside if aside.exists() else self.path / name

    def check_complete(self) -> None:
        """Raises InvalidDirectory unless every partition of every topic is here."""
        for topic in self.topics:
            for partition in sorted(topic.leader_epochs):
                if not self.partition_directory(topic.name, partition).is_dir():
                    raise InvalidDirectory(
                        f"{self.path} lacks partition {partition} of {topic.name}: it is in another "
                        "directory or on another broker. Move it here with Kafka's reassignment tool first."
                    )

    def offsets(self, checkpoint_file: str) -> dict[tuple[str, int], int]:
        """A checkpoint file's offsets; empty if it is missing. InvalidDirectory if it is damaged."""
        path = self.path / checkpoint_file
        try:
            return decode_offsets(path.read_bytes())
        except FileNotFoundError:
            return {}
        except CheckpointCorrupt as error:
            raise InvalidDirectory(
                f"{path} is damaged: {str(error).rstrip('.')}. Restore it from a backup, or remove it: "
                f"without {LOG_START_FILE}, deleted records that are still there come back."
            ) from error

    def records(self, topic: str, partition: int) -> Iterator[Record]:
        """The records of one of Kafka's internal topics, oldest first, up to an incomplete batch after a
        crash.
        """
        for segment in _segments(self.partition_directory(topic, partition)):
            data = segment.read_bytes()
            for position, header in iterate_headers(data):
                if not header.is_control:
                    yield from iterate_records(data, position)

    def committed_records(self, topic: str, partition: int) -> Iterator[Record]:
        """The same without records of aborted or open transactions.

        Records of a transaction come at its commit, as for a consumer with read_committed.
        """
        yield from self._replay_transactions(topic, partition, {})

    def open_records(self, topic: str, partition: int) -> dict[ProducerIdentity, list[Record]]:
        """The records of open transactions, oldest first."""
        pending: dict[int, tuple[ProducerIdentity, list[Record]]] = {}
        for _ in self._replay_transactions(topic, partition, pending):
            """Skip all other records."""
        return dict(pending.values())

    def _replay_transactions(
        self, topic: str, partition: int, pending: dict[int, tuple[ProducerIdentity, list[Record]]]
    ) -> Iterator[Record]:
        """The committed records; `pending` has the open records at each moment, by producer id."""
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
        """The partitions of one of Kafka's internal topics, ascending; empty if there is no such topic."""
        topics = self.metadata.topics.values()
        return [
            partition for topic in topics if topic.name == name for partition in sorted(topic.leader_epochs)
        ]

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
    """Whether a control batch is a commit marker."""
    keys = [record.key or b"" for record in iterate_records(data, position)]
    return any(key[2:4] == ControlType.COMMIT.to_bytes(2, "big") for key in keys)


def _replay_newest_snapshot(metadata: KafkaMetadata, directory: Path) -> int:
    """The offset at which the log continues after the snapshot."""
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
            f"{path} has no {META_PROPERTIES_FILE}: it is not a data directory of Apache Kafka."
        )
    return decode_meta_properties(file.read_bytes(), str(file))


def _check_unused(path: Path) -> None:
    """Raises DirectoryLocked if a running Kafka holds the lock. Does not take the lock."""
    lock = path / LOCK_FILE
    if not lock.exists():
        return
    with lock.open("rb") as file:
        query = _LOCK_QUERY.pack(_WRITE_LOCK, _FROM_START, 0, 0, 0)
        kind, _, _, _, pid = _LOCK_QUERY.unpack(fcntl.fcntl(file, fcntl.F_GETLK, query))
    if kind != _NO_LOCK:
        raise DirectoryLocked(str(lock), pid)
