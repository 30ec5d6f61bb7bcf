"""A follower of the metadata log, over real frames: its own log in memory is kept up to date by Fetch and
FetchSnapshot (KIP-595, KIP-630).

It obeys the leader: it reads on, truncates its log where it diverges, or reads a snapshot in pieces and
begins its log after it. It has no disk and no vote.
"""

from __future__ import annotations

from typing import Any

from barnabas.coordinator.metadata.image import MetadataChanges, MetadataImage
from barnabas.coordinator.metadata.snapshot import SnapshotId, decode_log, decode_snapshot
from barnabas.coordinator.metadata.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import iterate_headers
from tests.conformance.harness import Client, Lab, Pending

NODE_ID = 2
_STEPS_MAX = 1_000


class MetadataFollower:
    """`batches` are the log, as (base offset, epoch, bytes); the log begins after `snapshot`, if there is
    one.
    """

    def __init__(self, lab: Lab, *, piece_bytes: int = 1 << 20, fetch_bytes: int = 1 << 20) -> None:
        self._lab = lab
        self._client = lab.another_broker()
        self.piece_bytes = piece_bytes
        self.fetch_bytes = fetch_bytes
        self.snapshot: tuple[SnapshotId, bytes] | None = None
        self.batches: list[tuple[int, int, bytes]] = []
        self.next_offset = 0
        self.high_watermark = -1
        self.steps: list[str] = []
        """Its actions, in words."""

    @property
    def log_start_offset(self) -> int:
        return 0 if self.snapshot is None else self.snapshot[0].end_offset

    @property
    def last_fetched_epoch(self) -> int:
        if self.batches:
            return self.batches[-1][1]
        return 0 if self.snapshot is None else self.snapshot[0].epoch

    def image(self) -> MetadataImage:
        """The state that follows from snapshot and log."""
        image, changes = MetadataImage(), MetadataChanges()
        for record in () if self.snapshot is None else decode_snapshot(self.snapshot[1]):
            image.replay(record, changes)
        for offset, _, data in self.batches:
            for batch in decode_log(data, offset):
                for record in batch.records:
                    image.replay(record, changes)
        return image

    async def catch_up(self) -> None:
        """Steps until the follower is up to date."""
        for _ in range(_STEPS_MAX):
            if not await self.step():
                return
        raise AssertionError("the follower never catches up")

    async def step(self) -> bool:
        """One fetch and its consequences; returns whether it brought anything."""
        found = partition_of(await self._client.answered(self.start_fetch(max_wait=0)))
        assert found.error_code is ErrorCode.none, found
        if found.snapshot_id.end_offset >= 0:
            told = SnapshotId(found.snapshot_id.end_offset, found.snapshot_id.epoch)
            self.steps.append(f"snapshot {told.file_name}")
            await self.read_snapshot(told)
        elif found.diverging_epoch.epoch >= 0:
            self._cut(found.diverging_epoch.epoch, found.diverging_epoch.end_offset)
        elif found.records:
            self._append(bytes(found.records))
        else:
            self.high_watermark = found.high_watermark
            return False
        return True

    def start_fetch(self, **changed: Any) -> Pending:
        """Sends a fetch from the follower's position; `changed` are fields of the partition or request."""
        partition = {
            "partition": 0,
            "current_leader_epoch": self._lab.broker.metadata.node_epoch,
            "fetch_offset": self.next_offset,
            "last_fetched_epoch": self.last_fetched_epoch,
            "partition_max_bytes": 0,
            "high_watermark": self.high_watermark,
        }
        request = {
            "max_wait": 500,
            "min_bytes": 0,
            "max_bytes": self.fetch_bytes,
            "replica_state": {"replica_id": NODE_ID, "replica_epoch": -1},
            "cluster_id": self._lab.broker.cluster_id,
        }
        partition |= {name: value for name, value in changed.items() if name in partition}
        request |= {name: value for name, value in changed.items() if name not in partition}
        topics = [{"topic_id": METADATA_TOPIC_ID, "partitions": [partition]}]
        return self._client.send("fetch", None, **{"topics": topics, **request})

    async def read_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Reads all pieces of a snapshot, and starts the log again after it. If the snapshot is gone, the
        next fetch decides.
        """
        data = bytearray()
        while True:
            piece = await self.fetch_piece(snapshot_id, len(data))
            if piece.error_code is ErrorCode.snapshot_not_found:
                self.steps.append("snapshot gone")
                return
            assert piece.error_code is ErrorCode.none, piece
            assert len(piece.unaligned_records) <= self.piece_bytes
            data += piece.unaligned_records
            if len(data) == piece.size:
                break
        self.snapshot = snapshot_id, bytes(data)
        self.batches.clear()
        self.next_offset = snapshot_id.end_offset

    async def fetch_piece(self, snapshot_id: SnapshotId, position: int, **changed: Any) -> Any:
        """The partition of the response to one FetchSnapshot."""
        response = await self._client.answered(self.start_piece(snapshot_id, position, **changed))
        return response.topics[0].partitions[0]

    def start_piece(self, snapshot_id: SnapshotId, position: int, **changed: Any) -> Pending:
        """Send one FetchSnapshot."""
        return send_fetch_snapshot(
            self._client, self._lab, snapshot_id, position, self.piece_bytes, **changed
        )

    def _append(self, data: bytes) -> None:
        offset = self.next_offset
        for position, header in iterate_headers(data):
            assert header.base_offset == self.next_offset, "a gap, or a piece of a batch"
            batch = data[position : position + header.size_bytes]
            self.batches.append((header.base_offset, header.leader_epoch, batch))
            self.next_offset = header.last_offset + 1
        self.steps.append(f"records {offset}-{self.next_offset}")

    def _cut(self, epoch: int, end_offset: int) -> None:
        """Truncates the log at the end of the newest epoch that leader and follower may share."""
        own_ends = [base_offset for base_offset, own_epoch, _ in self.batches if own_epoch > epoch]
        cut_offset = min([end_offset, *own_ends])
        self.batches = [batch for batch in self.batches if batch[0] < cut_offset]
        self.next_offset = cut_offset
        self.steps.append(f"cut at {cut_offset}")


def send_fetch_snapshot(
    client: Client, lab: Lab, told: SnapshotId, at: int, bytes_max: int, **changed: Any
) -> Pending:
    """A FetchSnapshot as the follower sends it, with fields `changed`."""
    partition = {
        "partition": 0,
        "current_leader_epoch": lab.broker.metadata.node_epoch,
        "snapshot_id": {"end_offset": told.end_offset, "epoch": told.epoch},
        "position": at,
    }
    request = {"replica_id": NODE_ID, "max_bytes": bytes_max, "cluster_id": lab.broker.cluster_id}
    name = changed.pop("topic", METADATA_TOPIC)
    version = changed.pop("version", None)
    partition |= {field: value for field, value in changed.items() if field in partition}
    request |= {field: value for field, value in changed.items() if field not in partition}
    topics = [{"name": name, "partitions": [partition]}]
    return client.send("fetch_snapshot", version, **{"topics": topics, **request})


def partition_of(response: Any) -> Any:
    """The one partition of a Fetch response."""
    assert getattr(response, "error_code", ErrorCode.none) is ErrorCode.none, response
    ((partition,),) = [topic.partitions for topic in response.responses]
    return partition
