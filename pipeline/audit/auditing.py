"""An audit as DataFrames: what share groups did with the records of a log, from its control records alone.

`audit` plans once which bytes of which files there are; each table is derived from those when it is asked
for. All but the deliveries and the states come from one pass over the log, which is made once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's users write it
from pyspark.storagelevel import StorageLevel

from barnabas.pipeline.audit import tables
from barnabas.pipeline.audit.replay import DELIVERIES, FINDINGS, ReplayTask
from barnabas.pipeline.audit.source import ANSWER_OPTION, FORMAT, PLAN_OPTION, AuditSource, encode_plan
from barnabas.pipeline.audit.state_replay import STATE_TOPIC, DataPartition, StateTask
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.log_source.directories import PartitionFolder, find_partitions
from barnabas.pipeline.log_source.errors import LogFileError
from barnabas.pipeline.log_source.segment_slice import SegmentSlice
from barnabas.pipeline.log_source.slicing import Wanted, slice_partition
from barnabas.storage.format.checkpoint_file import CheckpointCorrupt
from barnabas.storage.format.partition_metadata import FILE_NAME, decode_partition_metadata

_WHOLE_SEGMENT: Final = 2**63 - 1
SlicedFolder = tuple[PartitionFolder, Sequence[SegmentSlice]]
_LATENCY_COLUMNS: Final = "topic,partition,offset,timestamp"
_KEY: Final = ("topic", "partition", "group")


def audit(
    spark: SparkSession,
    paths: Sequence[str],
    *,
    topics: Collection[str] | None = None,
    groups: Collection[str] | None = None,
    raise_damage: bool = True,
) -> Audit:
    """Audits the data directories of brokers, running or stopped.

    Of all `topics` but internal ones and all `groups` unless some are named. Where bytes are damaged that
    is an error naming the file, or with `raise_damage=False` a violation, after which what can be read is
    read on. Raises `OptionError` for a topic that isn't there, `LogFileError` for a path that is no data
    directory; reading a table raises Spark's error around a `CorruptLog`, or a `SegmentChanged` if
    retention or cleaning took a file meanwhile.
    """
    if not paths:
        raise OptionError("paths", "name a data directory at least")
    found = slice_folders(paths, topics, raise_damage=raise_damage)
    written = [(folder, pieces) for folder, pieces in found if pieces]
    share_count = -(-spark.sparkContext.defaultParallelism // max(len(written), 1))
    tasks = [
        ReplayTask(
            pieces=pieces,
            is_cut=folder.segments[0].base_offset > 0,
            share=share,
            share_count=share_count,
            groups=None if groups is None else sorted(groups),
            raise_damage=raise_damage,
        )
        for folder, pieces in written
        for share in range(share_count)
    ]
    state_tasks = plan_state_tasks(paths, found, groups, raise_damage=raise_damage)
    spark.dataSource.register(AuditSource)
    return Audit(spark, tasks, paths, state_tasks)


def slice_folders(
    paths: Sequence[str], topics: Collection[str] | None, *, raise_damage: bool
) -> list[SlicedFolder]:
    """The partitions, and a slice for each segment that is not empty. Raises as `audit` does."""
    cut = partial(slice_partition, wanted=Wanted(), slice_bytes=_WHOLE_SEGMENT, tolerant=not raise_damage)
    return [(folder, cut(folder)) for folder in find_partitions(paths, topics)]


def plan_state_tasks(
    paths: Sequence[str],
    found: Sequence[SlicedFolder],
    groups: Collection[str] | None,
    *,
    raise_damage: bool,
) -> list[StateTask]:
    """A task for each partition of the state topic that has records; none where there is no such topic."""
    try:
        sliced = slice_folders(paths, [STATE_TOPIC], raise_damage=raise_damage)
    except OptionError:
        return []
    data = [one for folder, pieces in found if (one := _data_partition(folder, pieces)) is not None]
    return [
        StateTask(
            pieces=pieces,
            data=data,
            groups=None if groups is None else sorted(groups),
            raise_damage=raise_damage,
        )
        for _, pieces in sliced
        if pieces
    ]


def _data_partition(folder: PartitionFolder, pieces: Sequence[SegmentSlice]) -> DataPartition | None:
    """None for a folder without a topic id, which no record of the state topic can name."""
    try:
        topic_id = decode_partition_metadata((Path(folder.path) / FILE_NAME).read_bytes())
    except FileNotFoundError:
        return None
    except CheckpointCorrupt as error:
        raise LogFileError(folder.path, f"its {FILE_NAME} is damaged: {error}") from error
    newest = pieces[-1] if pieces else None
    return DataPartition(topic_id=topic_id.hex, topic=folder.topic, partition=folder.partition, newest=newest)


class Audit:
    """The tables of one audit. Every attribute is a DataFrame; docs/audit.md has their columns.

    A context manager; `close` releases what Spark keeps of it.
    """

    def __init__(
        self,
        spark: SparkSession,
        tasks: Sequence[ReplayTask],
        paths: Sequence[str],
        state_tasks: Sequence[StateTask] = (),
    ) -> None:
        self.spark = spark
        self.tasks = tasks
        """What each task of Spark's is to read of the topics, fixed when the audit was planned."""
        self.state_tasks = state_tasks
        """The same of the state topic."""
        self._plan = encode_plan([*tasks, *state_tasks])
        self._paths = paths

    def __enter__(self) -> Audit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives back what Spark keeps of the audit; a table asked for afterwards is made anew."""
        self._findings.unpersist()

    def planned(self) -> dict[str, int]:
        """How many segments of how many partitions are read, and how many bytes they have."""
        read = [task.pieces for task in self.tasks if task.share == 0]
        read += [task.pieces for task in self.state_tasks]
        pieces = [piece for one in read for piece in one]
        size_bytes = sum(piece.size_bytes for piece in pieces)
        return {"partitionCount": len(read), "segmentCount": len(pieces), "sizeBytes": size_bytes}

    @cached_property
    def deliveries(self) -> DataFrame:
        """One row per range and outcome."""
        return _with_times(self._pass(DELIVERIES))

    @cached_property
    def states(self) -> DataFrame:
        """One row per range and the state that it has in the end: done, or open."""
        done = self.deliveries.where(F.col("outcome") != "available").withColumnRenamed("outcome", "state")
        open_ranges = self._table(tables.OPEN).withColumn("state", F.lit("available"))
        return done.unionByName(open_ranges, allowMissingColumns=True)

    @cached_property
    def outcomes(self) -> DataFrame:
        """Deliveries summed up by outcome, cause, member, delivery count and minute."""
        keys = [*_KEY, "outcome", "cause", "member", "deliveryCount", "minute"]
        summed = self._table(tables.OUTCOME).groupBy(*keys)
        return summed.agg(F.sum("rangeCount").alias("rangeCount"), F.sum("recordCount").alias("recordCount"))

    @cached_property
    def checkpoints(self) -> DataFrame:
        """One row per checkpoint."""
        return self._table(tables.CHECKPOINT)

    @cached_property
    def violations(self) -> DataFrame:
        """One row per contradiction; damaged bytes are among them, without a group."""
        return self._table(tables.VIOLATION)

    @cached_property
    def share_partitions(self) -> DataFrame:
        """One row per share-partition: where its history begins, how far it is, how much of it there is."""
        return self._table(tables.HISTORY)

    @cached_property
    def poison(self) -> DataFrame:
        """The worst ranges of each share-partition: delivered most, at the delivery limit, rejected."""
        return self._table(tables.POISON)

    @cached_property
    def latencies(self) -> DataFrame:
        """By topic, group and member how long records took from their timestamp to their final outcome, in
        ms.

        Reads the records as well, and explodes the ranges: for logs whose data is still there.
        """
        topics = sorted({task.topic_partition[0] for task in self.tasks})
        log = self.spark.read.format("kafka-log").options(topics=",".join(topics), columns=_LATENCY_COLUMNS)
        records = log.load(",".join(self._paths))
        done = self.deliveries.where(F.col("outcome") != "available")
        offsets = F.explode(F.sequence("firstOffset", "lastOffset")).alias("offset")
        joined = done.select(*_KEY, "member", "decidedAt", offsets).join(
            records, ["topic", "partition", "offset"]
        )
        took_ms = F.unix_millis("decidedAt") - F.unix_millis("timestamp")
        return joined.groupBy("topic", "group", "member").agg(
            F.count("*").alias("recordCount"),
            F.percentile_approx(took_ms, 0.5).alias("medianMs"),
            F.percentile_approx(took_ms, 0.99).alias("p99Ms"),
            F.max(took_ms).alias("maxMs"),
        )

    @cached_property
    def _findings(self) -> DataFrame:
        return self._pass(FINDINGS).persist(StorageLevel.MEMORY_AND_DISK)

    def _pass(self, answer: str) -> DataFrame:
        return (
            self.spark.read.format(FORMAT).options(**{PLAN_OPTION: self._plan, ANSWER_OPTION: answer}).load()
        )

    def _table(self, table: str) -> DataFrame:
        found = self._findings.where(F.col("table") == table)
        parsed = F.from_json("row", tables.ROW_COLUMNS[table]).alias("parsed")
        return _with_times(found.select(*_KEY, parsed).select(*_KEY, "parsed.*"))


def _with_times(found: DataFrame) -> DataFrame:
    """Each column of milliseconds as a timestamp, under its name without `Ms`."""
    columns = [
        F.timestamp_millis(F.col(name)).alias(name.removesuffix("Ms")) if name.endswith("Ms") else F.col(name)
        for name in found.columns
    ]
    return found.select(*columns)
