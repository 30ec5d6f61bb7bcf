"""Records that wait for dead letters of a group that no longer names a topic for them: the letters are given
up although no member fetches, with both stores of share state.

A request for offsets would load the leader, as a fetch does, so it comes after the sweep.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager

import pytest

from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.share.dead_letters.letter_work import RETRY_MS_MAX
from barnabas.share.sweep import sweep
from tests.broker.quick_reopening import reopen_at_once
from tests.conformance.conftest import Stage, make_stage
from tests.conformance.dead_lettering import (
    LETTER_TOPIC,
    ON_FAILURE,
    TOPIC_NAME,
    offsets_of_letters,
    use_dead_letters,
)
from tests.conformance.harness import Lab, open_lab, settle
from tests.conformance.share_member import GROUP, REJECT, ShareMember
from tests.conformance.test_sweep import IDLE_MS, sweeps

RECORDS = 3
GIVEN_UP = "records are archived without dead letters"
"""The broker logs that."""

End = Callable[[Lab], Awaitable[None]]


async def held(stage: Stage) -> None:
    """All records are rejected; their letters wait, because the topic is not enabled. No member is left."""
    await stage.lab.create_topic(LETTER_TOPIC)
    await hold(stage)


async def hold(stage: Stage) -> None:
    """The same, with a topic that holds the letters back."""
    await use_dead_letters(stage.lab)
    await stage.produce(RECORDS)
    member = stage.member()
    assert await member.take() == [(0, RECORDS - 1, 1)]
    await member.acknowledge([(0, RECORDS - 1, REJECT)])
    await settle()
    await member.leave_session()
    assert await stage.offsets() == (0, RECORDS)


def unwritable(stage: Stage) -> AbstractContextManager[None]:
    """No state of the group can be recorded within the block."""
    return stage.lab.broken_disk(stage.lab.state_directory(GROUP, stage.partition))


async def remove_the_name(stage: Stage, on_failure: str = "hold") -> None:
    await stage.lab.set_group_configs(GROUP, {TOPIC_NAME: "", ON_FAILURE: on_failure})
    await settle()


async def restart(lab: Lab) -> None:
    await lab.restart()


async def crash(lab: Lab) -> None:
    await lab.crash()


ends = pytest.mark.parametrize("end", [restart, crash])


@ends
@pytest.mark.parametrize("on_failure", ["hold", "archive"])
async def test_letters_of_an_earlier_broker_are_given_up(
    stage: Stage, end: End, on_failure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The name of the topic is removed before the next broker has looked at the records."""
    await held(stage)
    await end(stage.lab)
    await remove_the_name(stage, on_failure)
    assert GIVEN_UP not in capsys.readouterr().out
    await sweeps(stage.lab)
    assert GIVEN_UP in capsys.readouterr().out
    assert await stage.offsets() == (RECORDS, 0)
    assert await offsets_of_letters(stage.lab) == []


@ends
async def test_letters_that_could_not_be_given_up_are_given_up_by_the_next_broker(
    stage: Stage, end: End, capsys: pytest.CaptureFixture[str]
) -> None:
    """The name of the topic is removed, but the disk keeps the end of the records from being recorded."""
    await held(stage)
    with unwritable(stage):
        await remove_the_name(stage)
        await end(stage.lab)
    assert GIVEN_UP not in capsys.readouterr().out
    await sweeps(stage.lab)
    assert GIVEN_UP in capsys.readouterr().out
    assert await stage.offsets() == (RECORDS, 0)


async def test_a_leader_that_was_lost_with_its_log_is_replaced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The broker goes on, so it has looked at all share-partitions before."""
    reopen_at_once(monkeypatch)
    async with open_lab() as lab:
        stage = await make_stage(lab)
        await sweeps(lab, 3)
        await held(stage)
        with unwritable(stage):
            await remove_the_name(stage)
        await sweeps(lab, 8)
        assert GIVEN_UP in capsys.readouterr().out
        assert await stage.offsets() == (RECORDS, 0)


async def test_a_letter_that_was_written_before_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in its topic, and the end of its record is not recorded."""
    reopen_at_once(monkeypatch)
    async with open_lab() as lab:
        stage = await make_stage(lab)
        await lab.create_topic(LETTER_TOPIC, errors__deadletterqueue__group__enable="true")
        await lab.broker.logs.open(lab.broker.metadata.image.topics_by_name[LETTER_TOPIC], 0)
        with lab.broken_disk(f"{LETTER_TOPIC}-0"):
            await hold(stage)
        with unwritable(stage):
            await lab.advance(RETRY_MS_MAX)
            await remove_the_name(stage)
            await lab.crash()
        assert await offsets_of_letters(lab) == list(range(RECORDS))
        await sweeps(lab)
        assert await stage.offsets() == (RECORDS, 0)
        assert await offsets_of_letters(lab) == list(range(RECORDS))


async def test_groups_without_letters_are_looked_at_once(stage: Stage) -> None:
    await stage.produce(RECORDS)
    assert await stage.member().take() == [(0, RECORDS - 1, 1)]
    await stage.lab.crash()
    key = SharePartitionKey(GROUP, *stage.partition)
    leaders = stage.lab.broker.share_partitions
    assert leaders.in_memory(key) is None
    await sweeps(stage.lab)
    assert leaders.in_memory(key) is not None
    await sweeps(stage.lab, 2)
    assert stage.lab.broker.sweep.next_deadline_ms() is None
    await stage.lab.advance(IDLE_MS)
    assert leaders.in_memory(key) is None, "nothing brings it back"


async def test_some_are_looked_at_by_each_sweep(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "LEFT_PER_SWEEP_MAX", 2)
    topic_id = await lab.create_topic("wide", 3)
    partitions = [TopicIdPartition(topic_id, index) for index in range(3)]
    for group_id in ("a", "b"):
        member = ShareMember(lab.client(), partitions, group_id=group_id, member_id=f"member-{group_id}")
        await member.join("wide")
        await member.take()
    await lab.crash()
    counts: list[int] = []
    for _ in range(4):
        await sweeps(lab)
        counts.append(len(list(lab.broker.share_partitions)))
    assert counts == [2, 4, 6, 6]
