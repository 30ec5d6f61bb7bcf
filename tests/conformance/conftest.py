"""The setup of every conformance test."""

from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest

from barnabas.protocol.identity import TopicIdPartition
from tests.conformance import harness
from tests.conformance.harness import Lab, open_lab
from tests.conformance.share_member import GROUP, ShareMember


class Stage(NamedTuple):
    """A broker with topic `t` of one partition, and a group that begins at the earliest record."""

    lab: Lab
    partition: TopicIdPartition

    def member(self, number: int = 1) -> ShareMember:
        """A member over a connection of its own; it has not joined."""
        return ShareMember(self.lab.client(), [self.partition], member_id=f"member-{number}")

    async def produce(self, *batch_sizes: int) -> None:
        await self.lab.produce(self.partition.topic_id, *batch_sizes)

    async def restart(self, *, is_clean: bool) -> None:
        """The broker is stopped, or else killed, and starts again at once."""
        if is_clean:
            await self.lab.restart(down_ms=0)
        else:
            await self.lab.crash()

    async def offsets(self) -> tuple[int, int]:
        """Start offset and lag."""
        return await self.lab.offsets(GROUP, self.partition)


@pytest.fixture(autouse=True, params=["log", "topic"])
def share_state_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test runs twice: with the share state in the partitions' own logs, and in its topic."""
    store: str = request.param
    monkeypatch.setattr(harness, "share_state_store", store)
    return store


with_log_store_only = pytest.mark.parametrize("share_state_store", ["log"], indirect=True)
with_topic_store_only = pytest.mark.parametrize("share_state_store", ["topic"], indirect=True)


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with open_lab() as lab:
        yield lab


@pytest.fixture
async def stage(lab: Lab) -> Stage:
    return await make_stage(lab)


async def make_stage(lab: Lab) -> Stage:
    """The stage on this lab; `member-1` has joined the group, with epoch 2."""
    partition = TopicIdPartition(await lab.create_topic("t"), 0)
    await lab.configure_group(GROUP, auto_offset_reset="earliest")
    stage = Stage(lab, partition)
    await stage.member().join("t")
    return stage
