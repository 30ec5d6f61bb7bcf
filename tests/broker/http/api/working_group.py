"""A share group that has read records of a topic, seen over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from barnabas.protocol.identity import TopicIdPartition
from tests.broker.http.http_lab import HttpLab, open_http_lab
from tests.conformance.share_member import ShareMember

LOCK_MS = 15_000
GROUP_PATH = "/api/v1/share-groups/group"
RECORDS_PATH = f"{GROUP_PATH}/topics/t/partitions/0/records"


class WorkingGroup(NamedTuple):
    """`member` has joined the group `group`, which reads the topic `t` of two partitions from its start."""

    http: HttpLab
    member: ShareMember
    partition: TopicIdPartition

    async def ranges(self) -> list[Any]:
        """The states of the records, as (first offset, last offset, state)."""
        found = (await self.http.json(RECORDS_PATH))["ranges"]
        return [(one["first_offset"], one["last_offset"], one["state"]) for one in found]

    async def history(self, offset: int, query: str = "") -> Any:
        return await self.http.json(f"{RECORDS_PATH}/{offset}/history{query}")


@asynccontextmanager
async def working_group(
    *batch_sizes: int, store: str = "log", http_listener: str = ""
) -> AsyncGenerator[WorkingGroup]:
    """`store` is share.state.store."""
    given = {"http.listener": http_listener} if http_listener else {}
    async with open_http_lab({"share.state.store": store, **given}) as http:
        lab = http.lab
        topic_id = await lab.create_topic("t", partition_count=2)
        await lab.configure_group("group", auto_offset_reset="earliest", record_lock_duration_ms=LOCK_MS)
        await lab.produce(topic_id, *batch_sizes)
        partitions = [TopicIdPartition(topic_id, index) for index in (0, 1)]
        member = ShareMember(lab.client("worker"), partitions, member_id="member-1")
        await member.join("t")
        await member.fetch(max_records=0)
        await lab.advance(0)
        yield WorkingGroup(http, member, partitions[0])
