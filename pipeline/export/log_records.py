"""Reads the records of a slice from a broker's data directory instead of over the wire.

The decoder reads the segments directly, without load for the broker; every executor must see the directory.
If a running broker rewrites a file meanwhile, that is an error; run the export again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from barnabas.client.errors import RecordsGoneError, TopicGoneError
from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.export.manifest import ExportedSlice
from barnabas.pipeline.log_source.directories import PartitionFolder, find_partitions
from barnabas.pipeline.log_source.slice_reader import LogTask, read_log_slice
from barnabas.pipeline.log_source.slicing import LogBounds, log_end_offset, slice_partition
from barnabas.pipeline.log_source.transaction_index import AbortedTransaction
from barnabas.pipeline.schema import RECORD_COLUMNS
from barnabas.protocol.identity import TopicIdPartition
from barnabas.storage.format.partition_metadata import FILE_NAME as TOPIC_ID_FILE
from barnabas.storage.format.partition_metadata import decode_partition_metadata

SEGMENT_BYTES: Final = 1 << 40
"""A slice's part of a segment is read in one pass, through a window of bounded size."""

_META_PROPERTIES: Final = "meta.properties"
_CLUSTER_ID: Final = "cluster.id="


def check_cluster(directories: Sequence[str], cluster_id: str) -> None:
    """Checks that the data directories belong to this cluster. Raises `OptionError` if one does not."""
    for directory in directories:
        path = Path(directory) / _META_PROPERTIES
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        found = [line.removeprefix(_CLUSTER_ID) for line in lines if line.startswith(_CLUSTER_ID)]
        if found != [cluster_id]:
            raise OptionError(
                "--data-dir", f"{directory} is not a data directory of the cluster {cluster_id}"
            )


def find_folder(directories: Sequence[str], topic: str, partition: TopicIdPartition) -> PartitionFolder:
    """The folder of a partition.

    Raises `LogFileError`, `OptionError` if no directory has it, and `TopicGoneError` if the folder belongs to
    another topic of that name.
    """
    for folder in find_partitions(directories, [topic]):
        if folder.partition == partition.partition:
            if decode_partition_metadata(Path(folder.path, TOPIC_ID_FILE).read_bytes()) != partition.topic_id:
                raise TopicGoneError(partition.topic_id, topic)
            return folder
    raise OptionError("--data-dir", f"{topic}-{partition.partition} is not in {', '.join(directories)}")


def read_log_records(
    directories: Sequence[str],
    topic: str,
    partition: TopicIdPartition,
    piece: ExportedSlice,
    aborted: tuple[AbortedTransaction, ...],
) -> Iterator[RecordBatch]:
    """The slice's records without those of `aborted` transactions.

    Raises the errors of `find_folder`, and `RecordsGoneError` if the log begins behind the slice's start.
    """
    folder = find_folder(directories, topic, partition)
    held = range(folder.log_start_offset, log_end_offset(folder))
    if piece.start_offset not in held:
        raise RecordsGoneError(topic, partition.partition, piece.start_offset, held.start, held.stop)
    wanted = LogBounds(piece.start_offset, piece.end_offset)
    for segment in slice_partition(folder, wanted, SEGMENT_BYTES):
        task = LogTask(
            piece=segment,
            columns=tuple(RECORD_COLUMNS),
            offset_range=(piece.start_offset, piece.end_offset - 1),
            aborted=aborted,
        )
        yield from read_log_slice(task)
