"""`__consumer_offsets` is fenced by a disk error and opened again: members keep their epochs, confirmed
changes stay, and the state in memory is the state on the disk.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from barnabas.broker.internal_topics.internal_topic import InternalTopic
from barnabas.coordinator.metadata.topic_names import OFFSETS_TOPIC
from barnabas.coordinator.replay.key_partition import partition_of_key
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.errors import LogOffline
from tests.broker.quick_reopening import reopen_at_once
from tests.conformance.harness import INTERNAL_PARTITIONS, Lab, open_lab, settle
from tests.conformance.share_member import GROUP, ShareMember

OK = ErrorCode.none
RETRIABLE = (ErrorCode.coordinator_not_available, ErrorCode.coordinator_load_in_progress)
PARTITION = partition_of_key(GROUP, INTERNAL_PARTITIONS)
DIRECTORY = f"{OFFSETS_TOPIC}-{PARTITION}"


@pytest.fixture(autouse=True)
def logs_come_back_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reopen_at_once(monkeypatch)


@pytest.fixture(params=["interval", "always"])
async def lab(request: pytest.FixtureRequest) -> AsyncIterator[Lab]:
    """A broker whose group has one member, with both partitions of topic `t`."""
    async with open_lab(log__flush=request.param) as lab:
        await lab.create_topic("t", 2)
        await member(lab, 1).join("t")
        yield lab


@contextmanager
def unsynced_disk(lab: Lab) -> Generator[None]:
    """Every sync until the end of the block fails, and it is unknown how much of the data is on the disk."""
    lab.filesystem.sync_error = errno.EIO
    yield
    lab.filesystem.sync_error = None


def member(lab: Lab, number: int) -> ShareMember:
    return ShareMember(lab.client(), member_id=f"member-{number}")


async def group_state(lab: Lab) -> Any:
    """The group as the coordinator describes it."""
    response = await lab.admin.ask("share_group_describe", group_ids=[GROUP])
    (described,) = response.groups
    assert described.error_code is OK, described
    members = [
        (one.member_id, one.member_epoch, str(one.assignment))
        for one in sorted(described.members, key=lambda one: str(one.member_id))
    ]
    return described.group_epoch, described.assignment_epoch, members


async def reloaded(lab: Lab, *members: tuple[ShareMember, int]) -> None:
    """Heartbeats of these members, with their epochs, until the groups are served again."""
    for _ in range(10):
        answers = [await one.heartbeat(member_epoch, ["t"]) for one, member_epoch in members]
        await settle()
        if all(answer.error_code is OK for answer in answers):
            return
        assert {answer.error_code for answer in answers} <= {OK, *RETRIABLE}, answers
    raise AssertionError("the groups stay unloaded")


async def equals_the_disk(lab: Lab) -> bool:
    """Whether a start of the broker from the same files would load the group's current state."""
    now = await group_state(lab)
    await lab.crash()
    return bool(await group_state(lab) == now)


async def test_a_failed_write_fences_the_log_and_members_keep_their_epochs(lab: Lab) -> None:
    before = await group_state(lab)
    with lab.broken_disk(DIRECTORY):
        refused = await member(lab, 2).heartbeat(0, ["t"])
        assert refused.error_code in RETRIABLE
    epoch = before[2][0][1]
    await reloaded(lab, (member(lab, 1), epoch))
    assert (await group_state(lab))[2] == before[2]
    assert await equals_the_disk(lab)


async def test_a_refused_member_joins_once_the_disk_works_again(lab: Lab) -> None:
    with lab.broken_disk(DIRECTORY):
        assert (await member(lab, 2).heartbeat(0, ["t"])).error_code in RETRIABLE
    await reloaded(lab, (member(lab, 2), 0))
    _, _, members = await group_state(lab)
    assert [one for one, _, _ in members] == ["member-1", "member-2"]
    assert await equals_the_disk(lab)


async def test_a_join_refused_while_the_log_is_opened_again_is_never_written(lab: Lab) -> None:
    before = await group_state(lab)
    with lab.broken_disk(DIRECTORY):
        assert (await member(lab, 2).heartbeat(0, ["t"])).error_code in RETRIABLE
    # Decided on the state before the log failed; the log is opened for it, and loaded without it.
    assert (await member(lab, 3).heartbeat(0, ["t"])).error_code in RETRIABLE
    await reloaded(lab, (member(lab, 1), before[2][0][1]))
    assert await group_state(lab) == before
    assert await equals_the_disk(lab)


async def test_groups_that_cannot_be_read_again_are_tried_later(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [LogOffline("the disk is gone again")]
    read = InternalTopic.read

    async def read_at_the_second_time(topic: InternalTopic, partition: int) -> Any:
        if failures:
            raise failures.pop()
        return await read(topic, partition)

    monkeypatch.setattr(InternalTopic, "read", read_at_the_second_time)
    monkeypatch.setattr("barnabas.broker.internal_topics.coordinator_topic._PAUSE_SECONDS", 0)
    with lab.broken_disk(DIRECTORY):
        assert (await member(lab, 2).heartbeat(0, ["t"])).error_code in RETRIABLE
    await reloaded(lab, (member(lab, 2), 0))
    assert failures == []
    assert await equals_the_disk(lab)


async def test_a_member_that_left_stays_away(lab: Lab) -> None:
    await reloaded(lab, (member(lab, 2), 0))
    assert (await member(lab, 1).heartbeat(-1)).error_code is OK
    with lab.broken_disk(DIRECTORY):
        assert (await member(lab, 3).heartbeat(0, ["t"])).error_code in RETRIABLE
    await reloaded(lab, (member(lab, 3), 0))
    _, _, members = await group_state(lab)
    assert [one for one, _, _ in members] == ["member-2", "member-3"]
    assert await equals_the_disk(lab)


async def test_records_written_despite_a_failed_fsync_are_loaded() -> None:
    async with open_lab(log__flush="always") as lab:
        await lab.create_topic("t", 2)
        await member(lab, 1).join("t")
        epoch = (await group_state(lab))[2][0][1]
        with unsynced_disk(lab):
            assert (await member(lab, 2).heartbeat(0, ["t"])).error_code in RETRIABLE
        await reloaded(lab, (member(lab, 1), epoch), (member(lab, 2), 0))
        _, _, members = await group_state(lab)
        assert [one for one, _, _ in members] == ["member-1", "member-2"]
        assert all(epoch <= member_epoch for _, member_epoch, _ in members)
        assert await equals_the_disk(lab)


async def test_waiting_appends_are_refused_and_not_written_when_the_log_is_opened_again(lab: Lab) -> None:
    with lab.broken_disk(DIRECTORY):
        assert (await member(lab, 2).heartbeat(0, ["t"])).error_code in RETRIABLE
    # The log is offline: the requests of these members wait until it is open again.
    with lab.stalled_disk():
        joining = [
            lab.client().send(
                "share_group_heartbeat",
                group_id=GROUP,
                member_id=f"member-{number}",
                member_epoch=0,
                subscribed_topic_names=["t"],
            )
            for number in (2, 3)
        ]
        await settle()
        assert not any(pending.done for pending in joining)
    for pending in joining:
        assert (await lab.answered(pending)).error_code in RETRIABLE
    await reloaded(lab, (member(lab, 1), 2))
    assert [one for one, _, _ in (await group_state(lab))[2]] == ["member-1"]
    await reloaded(lab, (member(lab, 3), 0))
    assert [one for one, _, _ in (await group_state(lab))[2]] == ["member-1", "member-3"]
    assert await equals_the_disk(lab)


async def test_a_group_whose_log_fails_repeatedly_is_served_again(lab: Lab) -> None:
    before = await group_state(lab)
    for number in range(2, 6):
        with lab.broken_disk(DIRECTORY):
            assert (await member(lab, number).heartbeat(0, ["t"])).error_code in RETRIABLE
        await reloaded(lab, (member(lab, 1), before[2][0][1]))
    assert (await group_state(lab))[2][0] == before[2][0]
    assert await equals_the_disk(lab)
