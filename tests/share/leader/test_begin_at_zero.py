"""A leader that begins on an empty log: its group's own records have the start, and the log has nothing
(decision 20).
"""

from __future__ import annotations

import pytest

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.delivery_state import Cause
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.completion import Completion
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from tests.share.leader.leading import ACCEPT, RELEASE, Leading, acknowledge, leading


async def waiting_leader() -> tuple[Leading, SharePartitionLeader, Completion[None]]:
    """A leader of an empty log, and the pending append of its group's start."""
    stage = await leading()
    leader = stage.share_partitions.lead(stage.key(), stage.log)
    assert leader is not None
    recorded: Completion[None] = Completion()
    leader.start.begin_at_zero(recorded)
    return stage, leader, recorded


async def test_the_log_stays_empty_until_the_first_decision() -> None:
    stage, leader, recorded = await waiting_leader()
    assert not leader.core.is_initialised
    recorded.complete(None)
    assert (leader.core.spso, stage.log.log_end_offset) == (0, 0)


async def test_the_first_decision_follows_a_checkpoint_and_keeps_its_cause_and_its_member() -> None:
    stage, leader, recorded = await waiting_leader()
    recorded.complete(None)
    stage.produce(4)
    stage.fetch(leader)
    assert acknowledge(leader, 0, 2, ACCEPT, ACCEPT, RELEASE).done
    (_, checkpoint), (_, delta) = stage.records()
    assert isinstance(checkpoint, ShareCheckpoint)
    assert (checkpoint.start_offset, checkpoint.states) == (0, ())
    assert isinstance(delta, ShareDelta)
    assert [(one.cause, one.member) for one in delta.states] == [
        (Cause.ACCEPT, "member"),
        (Cause.RELEASE, "member"),
    ]
    assert acknowledge(leader, 3, 3).done
    assert [type(record) for _, record in stage.records()] == [ShareCheckpoint, ShareDelta, ShareDelta]


async def test_records_deleted_while_the_start_is_recorded_are_passed_over() -> None:
    stage, leader, recorded = await waiting_leader()
    stage.produce(3, 3)
    stage.log.delete_records(3)
    recorded.complete(None)
    assert leader.core.spso == 3
    assert stage.fetch(leader).acquired == [(3, 5, 1)]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_leader_with_an_unrecorded_start_is_not_dropped(fails: bool) -> None:
    _, leader, recorded = await waiting_leader()
    assert not leader.is_idle
    if fails:
        recorded.fail(ApiError(ErrorCode.coordinator_not_available))
        assert not leader.is_idle
    else:
        recorded.complete(None)
        assert leader.is_idle
