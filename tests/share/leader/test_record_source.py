"""A share-partition over records that no log of this node holds: the seam between a leader and its log."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG, build_batch, read_header
from barnabas.share.leader.group_reader import GroupReader
from barnabas.share.leader.record_source import RecordSource
from barnabas.share.leader.share_counts import PartitionCounts
from barnabas.share.partition.acquisition import Demand
from barnabas.share.partition.limits import AcquireMode, ShareLimits
from barnabas.share.partition.share_partition import SharePartition
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.share_image import ShareStateImage
from barnabas.storage.format.transaction_index import AbortedTransaction
from barnabas.storage.reading.log_slice import BatchSlice, BatchSpan
from barnabas.storage.topic_partition import TopicPartition
from tests.broker.network.edge_fakes import ManualClock
from tests.storage.log_building import NOW_MS, TOPIC_ID

START = 1_000
LIMITS = ShareLimits(delivery_count_max=5, lock_duration_ms=30_000, record_locks_max=200)


class RecordsElsewhere:
    """Records of another broker, which gives the offsets: they begin at 1,000, and some are missing."""

    topic_partition = TopicPartition("elsewhere", 0)
    opened_end_offset = 0

    def __init__(self) -> None:
        self.control_runs = ControlRuns()
        self.log_start_offset = START
        self.high_watermark = START
        self.aborted: list[AbortedTransaction] = []
        self._batches: list[bytes] = []

    @property
    def last_stable_offset(self) -> int:
        return self.high_watermark

    def add(self, count: int, *, hole: int = 0, producer_id: int = -1) -> None:
        """A batch of records behind a hole of some offsets."""
        base_offset = self.high_watermark + hole
        batch = build_batch(
            base_offset,
            [(None, b"v")] * count,
            leader_epoch=0,
            timestamp_ms=NOW_MS,
            producer_id=producer_id,
            attributes=TRANSACTIONAL_FLAG if producer_id >= 0 else 0,
        )
        self._batches.append(batch)
        self.high_watermark = base_offset + count

    def read_batches(
        self,
        offset: int,
        *,
        records_max: int,
        bytes_max: int,
        upper_offset: int | None = None,
        at_least_one: bool = True,
    ) -> BatchSlice:
        """One batch at a time: a source may end a read anywhere."""
        for batch in self._batches:
            header = read_header(batch)
            if header.last_offset >= offset and (upper_offset is None or header.base_offset < upper_offset):
                span = BatchSpan(header.base_offset, header.last_offset, 0, len(batch))
                return BatchSlice([span], memoryview(batch))
        return BatchSlice([], memoryview(b""))

    def aborted_transactions(self, first_offset: int, upper_offset: int) -> Sequence[AbortedTransaction]:
        return [
            one for one in self.aborted if one.first_offset < upper_offset and first_offset <= one.last_offset
        ]


class Group:
    """A group that begins at the start of the source."""

    def __init__(self, source: RecordSource) -> None:
        self._source = source
        image = ShareStateImage(source.control_runs)
        image.start_offset = image.end_offset = START
        self.core = SharePartition(image, source.control_runs)
        key = SharePartitionKey("group", TOPIC_ID, 0)
        self._reader = GroupReader(key, source, self.core, ManualClock(), PartitionCounts())

    def fetch(self, records_max: int, *, read_committed: bool = False) -> list[tuple[int, int, int]]:
        """The ranges that a member acquires."""
        mode = AcquireMode.BATCH_OPTIMIZED
        demand = Demand("member", records_max, 1 << 20, 500, mode, LIMITS, 0, read_committed=read_committed)
        plan = self.core.plan(demand)
        upper_offset = self._source.high_watermark
        read = self._reader.read(plan, LIMITS, demand.bytes_max, upper_offset, read_committed=read_committed)
        return self.core.acquire(read.plan, demand, read).acquired


def test_records_are_delivered_with_the_offsets_of_their_source() -> None:
    source = RecordsElsewhere()
    for hole in (0, 0, 7):
        source.add(3, hole=hole)
    group = Group(source)
    assert [group.fetch(1) for _ in range(4)] == [[(1000, 1002, 1)], [(1003, 1005, 1)], [(1013, 1015, 1)], []]
    assert group.core.lag(source.high_watermark) == 9


def test_records_of_its_aborted_transactions_are_not_delivered() -> None:
    source = RecordsElsewhere()
    source.add(2)
    source.add(2, producer_id=7)
    source.aborted.append(AbortedTransaction(7, 1002, 1003, 1002))
    source.add(1)
    group = Group(source)
    assert [group.fetch(1, read_committed=True) for _ in range(3)] == [
        [(1000, 1001, 1)],
        [],
        [(1004, 1004, 1)],
    ]
