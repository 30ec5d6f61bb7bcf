"""Resets and deletions of share state on behalf of the group coordinator."""

from __future__ import annotations

import asyncio
import errno
from uuid import UUID

from barnabas.protocol.control_record import ShareCheckpoint
from barnabas.share.leader.state_keeper import StateKeeper
from barnabas.storage.errors import LogOffline
from tests.broker.network.edge_fakes import settle
from tests.share.leader.leading import Leading, acknowledge, leading
from tests.storage.log_building import TOPIC_ID


def keeper(stage: Leading) -> StateKeeper:
    return StateKeeper(stage.share_partitions, stage.store)


async def read_by_the_group() -> Leading:
    """Four records; the group has accepted the first two."""
    stage = await leading()
    stage.produce(4)
    leader = stage.lead()
    stage.fetch(leader)
    acknowledge(leader, 0, 1)
    return stage


async def test_beginning_undecided_records_nothing_and_is_done_at_once() -> None:
    stage = await leading()
    ticket = keeper(stage).initialise("group", 1, TOPIC_ID, 0, -1, 1)
    assert ticket.done
    assert stage.log.log_end_offset == 0


async def test_a_start_offset_is_a_checkpoint_in_place_of_the_old_state() -> None:
    stage = await read_by_the_group()
    leader = stage.lead()
    await keeper(stage).initialise("group", 1, TOPIC_ID, 0, 3, 9)
    checkpoint = stage.records()[-1][1]
    assert isinstance(checkpoint, ShareCheckpoint)
    assert (checkpoint.start_offset, checkpoint.end_offset, checkpoint.states) == (3, 3, ())
    assert (checkpoint.state_epoch, checkpoint.checkpoint_epoch) == (9, 2)
    assert leader.closed
    assert stage.fetch(stage.lead()).acquired == [(3, 3, 1)]


async def test_the_start_is_not_looked_at() -> None:
    stage = await leading()
    await keeper(stage).initialise("group", 1, TOPIC_ID, 0, 100_000, 1)
    assert stage.lead().core.spso == 100_000


async def test_a_deletion_is_a_tombstone_after_which_the_group_is_undecided() -> None:
    stage = await read_by_the_group()
    await keeper(stage).delete("group", 1, TOPIC_ID, 0)
    checkpoint = stage.records()[-1][1]
    assert isinstance(checkpoint, ShareCheckpoint)
    assert checkpoint.deleted
    leader = stage.share_partitions.lead(stage.key(), stage.log)
    assert leader is not None
    assert not leader.core.is_initialised


async def test_unrecorded_state_needs_no_tombstone() -> None:
    stage = await leading()
    await keeper(stage).delete("group", 1, TOPIC_ID, 0)
    assert stage.log.log_end_offset == 0


async def test_a_partition_that_is_gone_has_no_state_to_write() -> None:
    stage = await leading()
    await keeper(stage).initialise("group", 1, UUID(int=99), 0, 5, 1)
    assert stage.log.log_end_offset == 0


async def test_there_is_no_leader_until_the_reset_is_written() -> None:
    stage = await read_by_the_group()
    state_keeper = keeper(stage)
    stage.let_open.clear()
    ticket = state_keeper.initialise("group", 1, TOPIC_ID, 0, 0, 1)
    await settle()
    assert not ticket.done
    assert stage.share_partitions.under_way(stage.key()) is ticket
    stage.let_open.set()
    await ticket
    assert stage.share_partitions.under_way(stage.key()) is None


async def test_a_failure_is_in_the_ticket_and_the_state_is_as_before() -> None:
    stage = await read_by_the_group()
    stage.filesystem.write_error, stage.filesystem.failing_suffix = errno.EIO, ".log"
    ticket = keeper(stage).initialise("group", 1, TOPIC_ID, 0, 0, 1)
    await settle()
    assert isinstance(ticket.error, LogOffline)
    again = await leading(stage.filesystem.copy())
    assert again.lead().core.spso == 2


async def test_closing_waits_for_writes_under_way() -> None:
    stage = await read_by_the_group()
    state_keeper = keeper(stage)
    stage.let_open.clear()
    ticket = state_keeper.delete("group", 1, TOPIC_ID, 0)
    closing = asyncio.ensure_future(stage.store.drained())
    await settle()
    assert not closing.done()
    stage.let_open.set()
    await closing
    assert ticket.done
