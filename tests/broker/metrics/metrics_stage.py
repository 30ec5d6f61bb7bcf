"""A share group whose member acknowledges, for the tests of its metrics."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from barnabas.protocol.identity import TopicIdPartition
from tests.conformance.harness import Lab, open_lab
from tests.conformance.share_member import ShareMember

LOCK_MS = 15_000


class Stage:
    """A topic of two partitions with ten records in the first, and a member of a group that reads both."""

    def __init__(self, lab: Lab, partitions: list[TopicIdPartition]) -> None:
        self.lab = lab
        self.partition = partitions[0]
        self.partitions = partitions
        self.member = self.new_member("member-1")

    def new_member(self, member_id: str) -> ShareMember:
        return ShareMember(self.lab.client(), self.partitions, member_id=member_id)

    def count(self, name: str, **labels: object) -> float:
        """One value; those of share-partitions are of the group's first."""
        if name.startswith("sharepartitionmetrics_"):
            labels |= {"group": "group", "topic": "t", "partition": 0}
        text = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        return self.lab.broker.metrics.snapshot()[f"kafka_server_{name}" + (f"{{{text}}}" if text else "")]

    def acknowledged(self) -> dict[str, float]:
        kinds = ("Accept", "Release", "Reject", "Renew")
        name = "sharegroupmetrics_recordacknowledgements_total"
        return {kind: self.count(name, ackType=kind) for kind in kinds}


@asynccontextmanager
async def staged(**settings: str) -> AsyncGenerator[Stage]:
    async with open_lab(**settings) as lab:
        topic_id = await lab.create_topic("t", partition_count=2)
        await lab.configure_group("group", auto_offset_reset="earliest", record_lock_duration_ms=LOCK_MS)
        await lab.produce(topic_id, 10)
        stage = Stage(lab, [TopicIdPartition(topic_id, index) for index in (0, 1)])
        await stage.member.join("t")
        yield stage
