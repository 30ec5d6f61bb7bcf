"""An audit as DataFrames: the work of share groups on the records of a log, from its control records alone.

`audit` makes the plan once, with the files and their sizes; each table is derived from it at its first use.
All tables except the deliveries and the states come from one pass over the log.
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
from barnabas.pipeline.audit.log_replay import DELIVERIES, FINDINGS, ReplayTask
from barnabas.pipeline.audit.source import ANSWER_OPTION, FORMAT, PLAN_OPTION, AuditSource, encode_plan
from barnabas.pipeline.audit.state_replay import STATE_TOPIC, DataPartition, StateTask
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.log_source.directories import PartitionFolder, find_partitions
from barnabas.pipeline.log_source.errors import LogFileError
from barnabas.pipeline.log_source.segment_slice import SegmentSlice
from barnabas.pipeline.log_source.slicing import LogBounds, slice_partition
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

    By default it covers all `groups`, and all `topics` except internal ones. Damaged bytes are an error that
    names the file. With `raise_damage=False` they are a violation, and the audit goes on behind them. Raises
    `OptionError` for a missing topic, `LogFileError` for a path that is not a data directory. Reading a table
    raises Spark's error around a `CorruptLog`, or around a `SegmentChanged` if retention or cleaning has
    removed a file since the plan.
    """
    if not paths:
        raise OptionError("paths", "name at least one data directory")
    found = slice_folders(paths, topics, raise_damage=raise_damage)
    written = [(folder, pieces) for folder, pieces in found if pieces]
    share_count = -(-spark.sparkContext.defaultParallelism // max(len(written), 1))
    tasks = [
        ReplayTask(
            pieces=pieces,
            is_cut=folder.segments[0].base_offset > 0,
            log_start_offset=folder.log_start_offset,
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
    """The partitions, and a slice for each segment that is not empty. Raises the errors of `audit`."""
    cut = partial(slice_partition, wanted=LogBounds(), slice_bytes=_WHOLE_SEGMENT, tolerant=not raise_damage)
    return [(folder, cut(folder)) for folder in find_partitions(paths, topics)]


def plan_state_tasks(
    paths: Sequence[str],
    found: Sequence[SlicedFolder],
    groups: Collection[str] | None,
    *,
    raise_damage: bool,
) -> list[StateTask]:
    """A task for each partition of the state topic with records; none without such a topic."""
    try:
        sliced = slice_folders(paths, [STATE_TOPIC], raise_damage=raise_damage)
    except OptionError:
        return []
    data = [
        partition for folder, pieces in found if (partition := _data_partition(folder, pieces)) is not None
    ]
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
    """The partition in a folder; None without a topic id: then no record of the state topic can name it."""
    try:
        topic_id = decode_partition_metadata((Path(folder.path) / FILE_NAME).read_bytes())
    except FileNotFoundError:
        return None
    except CheckpointCorrupt as error:
        raise LogFileError(folder.path, f"its {FILE_NAME} is damaged: {error}") from error
    newest = pieces[-1] if pieces else None
    return DataPartition(
        topic_id=topic_id.hex,
        topic=folder.topic,
        partition=folder.partition,
        log_start_offset=folder.log_start_offset,
        newest=newest,
    )


class Audit:
    """The tables of one audit. Every attribute is a DataFrame; docs/audit.md has their columns.

    A context manager; `close` frees the data that Spark keeps.
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
        """The tasks that read the topics, fixed when the audit was planned."""
        self.state_tasks = state_tasks
        """The tasks that read the state topic."""
        self._plan = encode_plan([*tasks, *state_tasks])
        self._paths = paths

    def __enter__(self) -> Audit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Frees the data that Spark keeps of the audit; a later use of a table computes it again."""
        self._findings.unpersist()
        if "latencies" in vars(self):  # they are costly, and made only if a caller asks for them
            self.latencies.unpersist()

    def planned(self) -> dict[str, int]:
        """The number of partitions and segments to read, and their size."""
        read = [task.pieces for task in self.tasks if task.share == 0]
        read += [task.pieces for task in self.state_tasks]
        pieces = [piece for task_pieces in read for piece in task_pieces]
        size_bytes = sum(piece.size_bytes for piece in pieces)
        return {"partitionCount": len(read), "segmentCount": len(pieces), "sizeBytes": size_bytes}

    @cached_property
    def deliveries(self) -> DataFrame:
        """One row per range and outcome."""
        return _with_times(self._pass(DELIVERIES))

    @cached_property
    def states(self) -> DataFrame:
        """One row per range with its final state: done, or open."""
        done = self._done.withColumnRenamed("outcome", "state")
        return done.unionByName(self._table(tables.OPEN), allowMissingColumns=True)

    @cached_property
    def outcomes(self) -> DataFrame:
        """Sums of deliveries by outcome, cause, letter, member, delivery count and minute."""
        keys = [*_KEY, "outcome", "cause", "letter", "member", "deliveryCount", "minute"]
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
        """One row per share-partition: the beginning, end and size of its history."""
        return self._table(tables.HISTORY)

    @cached_property
    def poison(self) -> DataFrame:
        """The worst ranges of each share-partition: those whose dead letter was lost, those at the delivery
        limit, rejected ones, those delivered most.
        """
        return self._table(tables.POISON)

    @cached_property
    def latencies(self) -> DataFrame:
        """By topic, group and member, the time in ms from a record's timestamp to its final outcome.

        Reads the records, too, and makes a row of each offset, so the log must still have its data. Spark
        keeps the result, for a report and a table.
        """
        topics = sorted({task.topic_partition[0] for task in self.tasks})
        log = self.spark.read.format("kafka-log").options(topics=",".join(topics), columns=_LATENCY_COLUMNS)
        records = log.load(",".join(self._paths))
        offsets = F.explode(F.sequence("firstOffset", "lastOffset")).alias("offset")
        joined = self._done.select(*_KEY, "member", "decidedAt", offsets).join(
            records, ["topic", "partition", "offset"]
        )
        took_ms = F.unix_millis("decidedAt") - F.unix_millis("timestamp")
        summed = joined.groupBy("topic", "group", "member").agg(
            F.count("*").alias("recordCount"),
            F.percentile_approx(took_ms, 0.5).alias("medianMs"),
            F.percentile_approx(took_ms, 0.99).alias("p99Ms"),
            F.max(took_ms).alias("maxMs"),
        )
        return summed.persist(StorageLevel.MEMORY_AND_DISK)

    @property
    def _done(self) -> DataFrame:
        """The deliveries after which a record is done."""
        return self.deliveries.where(~F.col("outcome").isin(*tables.OPEN_OUTCOMES))

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
