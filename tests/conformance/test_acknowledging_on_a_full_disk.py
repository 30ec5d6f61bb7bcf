"""Acknowledgements on a full disk: either store answers with the storage error, and with no other error,
until there is space.
"""

import asyncio
import errno
from collections.abc import Generator
from contextlib import contextmanager, suppress

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.storage.errors import StorageError
from tests.conformance.conftest import with_log_store_only
from tests.conformance.harness import Lab, open_lab, settle
from tests.conformance.share_member import ACCEPT, GROUP, ShareMember

OK, STORAGE_ERROR = ErrorCode.none, ErrorCode.kafka_storage_error
NOT_AVAILABLE = ErrorCode.coordinator_not_available
SECONDS = 6.0
"""After this time an offline log may be reopened, and the free space is checked again."""


@contextmanager
def full_disk(lab: Lab) -> Generator[None]:
    lab.filesystem.write_error, lab.filesystem.failing_suffix = errno.ENOSPC, ""
    yield
    lab.filesystem.write_error = None


class Member:
    """A member that holds ten records of one partition, and time that passes by command."""

    def __init__(self, lab: Lab, member: ShareMember, monkeypatch: pytest.MonkeyPatch) -> None:
        self._lab = lab
        self._member = member
        self._seconds = 0.0
        loop = asyncio.get_running_loop()
        time = loop.time
        monkeypatch.setattr(loop, "time", lambda: time() + self._seconds)

    @classmethod
    async def holding(cls, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> "Member":
        topic_id = await lab.create_topic("t")
        await lab.configure_group(GROUP, auto_offset_reset="earliest")
        member = ShareMember(lab.client(), [TopicIdPartition(topic_id, 0)])
        await member.join("t")
        await lab.produce(topic_id, 10)
        assert await member.take() == [(0, 9, 1)]
        return cls(lab, member, monkeypatch)

    async def acknowledge(self, offset: int) -> int:
        (error,) = (await self._member.acknowledge([(offset, offset, ACCEPT)])).errors
        return error

    async def acknowledge_while_fetching(self, offset: int) -> int:
        """The error of the acknowledgement."""
        (error,) = (await self._member.fetch([(offset, offset, ACCEPT)])).acknowledge_errors
        return error

    async def have_log_opened(self) -> None:
        """As a producer does; the leader leaves with the log that failed."""
        with suppress(StorageError):
            await self._lab.broker.logs.open(self._lab.broker.metadata.image.topics_by_name["t"], 0)

    async def take(self) -> list[tuple[int, int, int]]:
        return await self._member.take(epoch=0)

    async def pass_time(self) -> None:
        self._seconds += SECONDS
        for _ in range(10):
            await settle()


async def test_every_acknowledgement_gets_the_storage_error_until_there_is_room(
    monkeypatch: pytest.MonkeyPatch, share_state_store: str
) -> None:
    async with open_lab() as lab:
        member = await Member.holding(lab, monkeypatch)
        with full_disk(lab):
            for offset in range(3):
                assert await member.acknowledge(offset) == STORAGE_ERROR
                await member.pass_time()
                await member.have_log_opened()
                assert await member.acknowledge(offset) == STORAGE_ERROR
                assert await member.acknowledge_while_fetching(offset) == STORAGE_ERROR
                await member.pass_time()
        await member.pass_time()
        await lab.broker.log_directory.full_disk.look_again()
        assert not lab.broker.log_directory.full_disk.is_full
        is_lock_kept = share_state_store == "topic"
        assert await member.acknowledge(3) == (NOT_AVAILABLE if is_lock_kept else STORAGE_ERROR)
        await member.pass_time()
        assert await member.acknowledge(3) == (OK if is_lock_kept else ErrorCode.invalid_record_state)


@with_log_store_only
async def test_an_acknowledgement_has_a_log_that_went_offline_opened_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_lab() as lab:
        member = await Member.holding(lab, monkeypatch)
        with full_disk(lab):
            assert await member.acknowledge(0) == STORAGE_ERROR
        await member.pass_time()
        assert await member.acknowledge(0) == STORAGE_ERROR
        await member.pass_time()
        assert lab.broker.log_directory.find("t", 0) is not None
        assert await member.take() == [(0, 9, 1)]
