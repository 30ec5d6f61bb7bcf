"""Share state through the share coordinator: shared writes, loading, errors, resets that overtake."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from barnabas.protocol.delivery_state import Cause, LetterPlace, RecordState, StateRange
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.completion import Completion
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.purgatory import Purgatory
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.leader.share_partitions import SharePartitions
from barnabas.share.leader.state_keeper import StateKeeper
from barnabas.share.partition.limits import ShareLimits
from barnabas.share.partition.waits import no_jitter
from barnabas.share.topic_store.topic_state_store import TopicStateStore
from barnabas.storage.errors import StorageError
from barnabas.storage.files.full_disk import FullDisk
from barnabas.storage.format.share_partition_state import StateWrite
from barnabas.storage.format.state_batches import StateBatch
from barnabas.storage.log.partition_log import PartitionLog
from tests.broker.network.edge_fakes import ManualClock, ManualTimers
from tests.coordinator.share_state.share_state_bench import Bench
from tests.share.leader.leading import PARTITION, Groups, Leading, acknowledge, leading
from tests.share.recorded_letters import RecordedLetters
from tests.storage.log_building import TOPIC_ID
from tests.storage.memory_filesystem import MemoryFileSystem


class TopicLeading(Leading):
    """Leaders on one log whose state is kept by a coordinator over a simulated log."""

    def __init__(self, filesystem: MemoryFileSystem, log: PartitionLog, bench: Bench) -> None:
        self.filesystem = filesystem
        self.log = log
        self.bench = bench
        bench.topics.ids.add(TOPIC_ID)
        self.clock = ManualClock()
        self.timers = ManualTimers(self.clock)
        self.groups = Groups()
        self.limits = ShareLimits(delivery_count_max=5, lock_duration_ms=1000, record_locks_max=200)
        self.topic_store = TopicStateStore(
            bench.coordinator, self.clock.wall_ms, FullDisk(filesystem, "/data")
        )
        deadlines = Deadlines(self.clock, self.timers.call_later)
        self.letters = RecordedLetters()
        self.share_partitions = SharePartitions(
            clock=self.clock,
            deadlines=deadlines,
            purgatory=Purgatory(deadlines),
            groups=self.groups,
            limits=lambda _: self.limits,
            random=no_jitter,
            has_topic=lambda topic_id: topic_id == TOPIC_ID,
            store=self.topic_store,
            reopen=lambda _: None,
            dead_letters=self.letters,
        )
        self.keeper = StateKeeper(self.share_partitions, self.topic_store)
        self._follow(log)

    async def again(self, *, records_left: int | None = None) -> TopicLeading:
        """Another broker over the same logs, or over a log with that number of records."""
        left = await self._left(records_left)
        return TopicLeading(left.filesystem, left.log, self.bench.restarted())

    async def reopen(self, *, records_left: int) -> None:
        """The log went offline and was reopened, with that number of records."""
        left = await self._left(records_left)
        left.log.leader_epoch = self.log.leader_epoch
        self.filesystem, self.log = left.filesystem, left.log
        self._follow(self.log)
        self.share_partitions.forget_partition(PARTITION)

    def release_all(self) -> None:
        """Ends the waits for the coordinator's log, and delays nothing from now on."""
        self.bench.log.held = False
        while self.bench.log.waiting:
            self.bench.log.release()

    def _follow(self, log: PartitionLog) -> None:
        log.when_moved(lambda: self.share_partitions.log_moved(PARTITION.place, log))

    async def _left(self, records_left: int | None) -> Leading:
        if records_left is None:
            return await leading(self.filesystem.copy())
        shorter = await leading()
        shorter.produce(records_left)
        return await leading(shorter.filesystem.copy())


@pytest.fixture
async def stage() -> TopicLeading:
    """Four records and a coordinator."""
    begun = await leading()
    stage = TopicLeading(begun.filesystem, begun.log, Bench())
    stage.produce(4)
    return stage


def held(stage: TopicLeading) -> SharePartitionLeader:
    """A leader; a member holds all its records."""
    leader = stage.lead()
    stage.fetch(leader)
    return leader


def code_of(ticket: Completion[None]) -> ErrorCode:
    assert isinstance(ticket.error, ApiError)
    return ticket.error.code


async def test_a_missing_state_is_begun_and_read_and_the_start_written(stage: TopicLeading) -> None:
    assert stage.lead().core.spso == 0
    assert stage.bench.kinds() == "Su"


async def test_an_acknowledgement_is_there_after_a_restart(stage: TopicLeading) -> None:
    assert acknowledge(held(stage), 0, 1).done
    again = await stage.again()
    assert again.lead().core.spso == 2
    assert again.fetch(again.lead()).acquired == [(2, 3, 1)]


class TestRecordsOnTheirWayToDeadLetters:
    """The state Archiving, which Apache Kafka writes before it copies records to a topic for dead letters."""

    def write(self, stage: TopicLeading, first_offset: int, last_offset: int, *, count: int = 0) -> None:
        """Writes as a leader of Apache Kafka did, which no longer runs."""
        batches = [StateBatch(first_offset, last_offset, 2, RecordState.ARCHIVING)]
        written = StateWrite(1, 0, 0, count, batches)
        stage.bench.initialise(key=stage.key())
        assert stage.bench.coordinator.write(stage.key(), written, now_ms=0).done

    async def test_are_handed_over_to_be_written(self, stage: TopicLeading) -> None:
        self.write(stage, 1, 2)
        stage = await stage.again()
        leader = stage.lead()
        (due,) = stage.letters.due
        assert due == StateRange(1, 2, RecordState.ARCHIVING, 2, condition=LetterPlace())
        assert stage.fetch(leader).acquired == [(0, 0, 1), (3, 3, 1)]
        assert leader.end_letters([(1, 2)], Cause.DEAD_LETTER).done
        state = stage.bench.read(key=stage.key()).result()
        assert state.state_batches == [StateBatch(1, 2, 2, RecordState.ARCHIVED)]
        assert state.delivery_complete_count == 2

    async def test_hold_the_start_until_they_are_archived(self, stage: TopicLeading) -> None:
        self.write(stage, 0, 1)
        stage = await stage.again()
        leader = stage.lead()
        assert leader.core.spso == 0
        assert leader.end_letters([(0, 1)], Cause.DEAD_LETTER).done
        assert leader.core.spso == 2

    async def test_have_their_place_recorded(self, stage: TopicLeading) -> None:
        self.write(stage, 0, 1)
        stage = await stage.again()
        place = LetterPlace(Cause.NONE, UUID(int=5), 1, 90)
        assert stage.lead().place_letters([(0, 1)], place).done
        (batch,) = stage.bench.read(key=stage.key()).result().state_batches
        assert batch == StateBatch(0, 1, 2, RecordState.ARCHIVING, place)

    async def test_may_be_lost_with_the_end_of_the_log(self, stage: TopicLeading) -> None:
        self.write(stage, 1, 3)
        shorter = await stage.again(records_left=2)
        shorter.produce(2)
        assert shorter.fetch(shorter.lead()).acquired == [(0, 0, 1), (2, 3, 1)]


class TestALogThatLostMoreThanTheGroupsState:
    """The state after a loss of power: it names records that are lost. The leader's epoch stays the same, as
    it does when a log is reopened within one process.
    """

    @pytest.mark.parametrize("produced_before_it_is_led", [0, 1, 3])
    async def test_begins_again_where_it_ended_then(
        self, stage: TopicLeading, produced_before_it_is_led: int
    ) -> None:
        assert acknowledge(held(stage), 0, 3).done
        shorter = await stage.again(records_left=2)
        shorter.produce(*[1] * produced_before_it_is_led)
        assert shorter.lead().core.spso == 2
        shorter.produce(5 - 2 - produced_before_it_is_led or 1)
        assert shorter.fetch(shorter.lead()).acquired[0][0] == 2
        assert (await shorter.again()).lead().core.spso == 2

    async def test_keeps_the_states_of_the_records_that_are_left(self, stage: TopicLeading) -> None:
        leader = held(stage)
        assert acknowledge(leader, 1, 1).done
        assert acknowledge(leader, 3, 3).done
        shorter = await stage.again(records_left=2)
        shorter.produce(2)
        assert shorter.fetch(shorter.lead()).acquired == [(0, 0, 1), (2, 3, 1)]
        assert shorter.bench.kinds()[-1] == "S", "taken out with one record"

    async def test_does_so_when_it_is_opened_anew_in_the_same_process(self, stage: TopicLeading) -> None:
        assert acknowledge(held(stage), 0, 3).done
        await stage.reopen(records_left=2)
        stage.produce(3)
        assert stage.fetch(stage.lead()).acquired == [(2, 4, 1)]

    async def test_is_looked_at_once(self, stage: TopicLeading) -> None:
        """State recorded since then concerns records appended since then."""
        assert acknowledge(held(stage), 0, 3).done
        shorter = await stage.again(records_left=2)
        shorter.produce(3)
        assert acknowledge(held(shorter), 2, 4).done
        shorter.share_partitions.forget(shorter.key())
        assert shorter.lead().core.spso == 5

    async def test_is_led_once_that_could_be_recorded(self, stage: TopicLeading) -> None:
        assert acknowledge(held(stage), 0, 3).done
        shorter = await stage.again(records_left=2)
        shorter.bench.log.failing = True
        with pytest.raises(ApiError):
            shorter.share_partitions.lead(shorter.key(), shorter.log)
        shorter.bench.log.failing = False
        assert shorter.lead().core.spso == 2

    async def test_leaves_state_alone_that_a_reset_begins_meanwhile(self, stage: TopicLeading) -> None:
        assert acknowledge(held(stage), 0, 3).done
        shorter = await stage.again(records_left=2)
        shorter.log.leader_epoch = 1
        shorter.bench.log.held = True
        # Reading in a newer epoch records that epoch.
        assert shorter.share_partitions.lead(shorter.key(), shorter.log) is None
        shorter.keeper.initialise("group", 1, TOPIC_ID, 0, 100, 9)
        shorter.release_all()
        assert shorter.lead().core.spso == 100

    async def test_a_load_for_the_earlier_log_has_no_effect_on_it(self, stage: TopicLeading) -> None:
        assert acknowledge(held(stage), 0, 3).done
        again = await stage.again()
        again.log.leader_epoch = 1
        again.bench.log.held = True
        assert again.share_partitions.lead(again.key(), again.log) is None
        await again.reopen(records_left=2)
        again.release_all()
        assert again.lead().core.spso == 2

    async def test_keeps_a_start_that_an_administrator_sets_beyond_it_until_a_restart(
        self, stage: TopicLeading
    ) -> None:
        stage.lead()
        assert stage.keeper.initialise("group", 1, TOPIC_ID, 0, 100, 8).done
        assert stage.lead().core.spso == 100
        assert (await stage.again()).lead().core.spso == 4

    async def test_loses_such_a_start_with_its_end(self, stage: TopicLeading) -> None:
        assert stage.keeper.initialise("group", 1, TOPIC_ID, 0, 100, 8).done
        await stage.reopen(records_left=2)
        assert stage.lead().core.spso == 2

    async def test_a_deleted_state_is_looked_at_again_when_it_is_back(self, stage: TopicLeading) -> None:
        stage.lead()
        assert stage.keeper.delete("group", 1, TOPIC_ID, 0).done
        stage.bench.initialise(100, key=stage.key())
        assert stage.lead().core.spso == 0, "all there was when the log was opened"


async def test_a_group_made_again_at_lower_epochs_begins_anew(stage: TopicLeading) -> None:
    assert acknowledge(held(stage), 0, 3).done
    stage.keeper.initialise("group", 1, TOPIC_ID, 0, 0, 20)
    again = await stage.again()
    assert again.keeper.initialise("group", 2, TOPIC_ID, 0, 1, 3).error is None
    assert again.fetch(again.lead()).acquired == [(1, 3, 1)]


async def test_changes_decided_during_a_write_are_written_together(stage: TopicLeading) -> None:
    leader = held(stage)
    before = len(stage.bench.records())
    stage.bench.log.held = True
    tickets = [acknowledge(leader, offset, offset) for offset in (0, 2, 1)]
    assert [ticket.done for ticket in tickets] == [False, False, False]
    stage.bench.log.release()
    assert [ticket.done for ticket in tickets] == [True, False, False]
    stage.bench.log.release()
    assert [ticket.error for ticket in tickets] == [None, None, None]
    assert len(stage.bench.records()) == before + 2
    assert leader.core.spso == 3


async def test_a_write_that_fails_leaves_the_records_as_they_were(stage: TopicLeading) -> None:
    leader = held(stage)
    stage.bench.log.failing = True
    ticket = acknowledge(leader, 0, 1)
    assert code_of(ticket) is ErrorCode.coordinator_not_available
    stage.bench.log.failing = False
    assert acknowledge(leader, 0, 1).error is None


def led_by_another(stage: TopicLeading) -> None:
    stage.bench.coordinator.read(stage.key(), leader_epoch=99, now_ms=0)


def begun_anew_by_another(stage: TopicLeading) -> None:
    stage.bench.initialise(0, state_epoch=50, key=stage.key())


def deleted_by_another(stage: TopicLeading) -> None:
    stage.bench.coordinator.delete(stage.key())


class TestAFencedLeader:
    """Its state was taken over, initialised again or deleted through the coordinator."""

    @pytest.mark.parametrize("fence", [led_by_another, begun_anew_by_another, deleted_by_another])
    async def test_gets_the_error_that_it_no_longer_leads_and_is_dropped(
        self, stage: TopicLeading, fence: Callable[[TopicLeading], None]
    ) -> None:
        leader = held(stage)
        fence(stage)
        assert code_of(acknowledge(leader, 0, 0)) is ErrorCode.not_leader_or_follower
        assert leader.closed
        assert stage.share_partitions.get(stage.key()) is None

    @pytest.mark.parametrize("fence", [begun_anew_by_another, deleted_by_another])
    async def test_is_followed_by_one_with_the_present_state(
        self, stage: TopicLeading, fence: Callable[[TopicLeading], None]
    ) -> None:
        leader = held(stage)
        fence(stage)
        acknowledge(leader, 0, 0)
        assert acknowledge(held(stage), 0, 1).error is None
        assert stage.lead().core.spso == 2

    async def test_drops_the_writes_that_wait_behind_the_refused_one(self, stage: TopicLeading) -> None:
        leader = held(stage)
        stage.bench.log.held = True
        begun_anew_by_another(stage)
        tickets = [acknowledge(leader, offset, offset) for offset in (0, 1)]
        stage.release_all()
        assert [code_of(ticket) for ticket in tickets] == [ErrorCode.not_leader_or_follower] * 2
        assert stage.fetch(stage.lead()).acquired == [(0, 3, 1)]

    async def test_takes_nothing_from_those_that_follow_the_log_start_with_it(
        self, stage: TopicLeading
    ) -> None:
        fenced, other = stage.lead("group"), stage.lead("other")
        begun_anew_by_another(stage)
        stage.log.delete_records(2)
        assert (fenced.closed, other.closed, other.core.spso) == (True, False, 2)


async def test_a_deleted_topic_is_unknown(stage: TopicLeading) -> None:
    leader = held(stage)
    stage.bench.topics.ids.clear()
    assert code_of(acknowledge(leader, 0, 0)) is ErrorCode.unknown_topic_or_partition


class TestLoading:
    async def test_under_way_there_is_no_leader_and_then_there_is(self, stage: TopicLeading) -> None:
        stage.bench.log.held = True
        key = stage.key()
        assert stage.share_partitions.lead(key, stage.log) is None
        assert stage.share_partitions.lead(key, stage.log) is None, "begun once"
        ticket = stage.share_partitions.under_way(key)
        assert ticket is not None
        stage.bench.log.release()
        assert ticket.done
        assert stage.share_partitions.under_way(key) is None
        assert stage.share_partitions.get(key) is not None
        assert stage.bench.kinds() == "S"

    async def test_a_failure_is_reported_once_and_tried_again(self, stage: TopicLeading) -> None:
        stage.bench.log.held = stage.bench.log.failing = True
        assert stage.share_partitions.lead(stage.key(), stage.log) is None
        stage.bench.log.release()
        with pytest.raises(ApiError):
            stage.share_partitions.lead(stage.key(), stage.log)
        stage.bench.log.held = stage.bench.log.failing = False
        assert stage.share_partitions.lead(stage.key(), stage.log) is not None

    async def test_nothing_comes_of_one_that_a_reset_overtakes(self, stage: TopicLeading) -> None:
        stage.bench.log.held = True
        assert stage.share_partitions.lead(stage.key(), stage.log) is None
        reset = stage.keeper.initialise("group", 1, TOPIC_ID, 0, 3, 9)
        stage.bench.log.release()
        assert stage.share_partitions.get(stage.key()) is None
        stage.release_all()
        assert reset.done
        assert stage.lead().core.spso == 3

    async def test_nothing_comes_of_a_load_whose_log_is_closed(self, stage: TopicLeading) -> None:
        stage.bench.log.held = True
        assert stage.share_partitions.lead(stage.key(), stage.log) is None
        stage.share_partitions.forget_partition(PARTITION)
        stage.bench.log.release()
        assert stage.share_partitions.get(stage.key()) is None
        assert stage.share_partitions.under_way(stage.key()) is None

    async def test_a_state_of_an_unknown_kind_is_refused(self, stage: TopicLeading) -> None:
        stage.bench.initialise(key=stage.key())
        stage.bench.write((0, 0), key=stage.key())
        records = stage.bench.log.batches[-1].records
        records[0] = (records[0][0], (records[0][1] or b"").replace(b"\x02\x00\x01", b"\x09\x00\x01"))
        with pytest.raises(StorageError, match="cannot be read"):
            (await stage.again()).lead()


class TestResets:
    async def test_begin_anew_at_an_offset(self, stage: TopicLeading) -> None:
        leader = held(stage)
        acknowledge(leader, 0, 3)
        assert stage.keeper.initialise("group", 1, TOPIC_ID, 0, 2, 9).error is None
        assert leader.closed
        assert stage.fetch(stage.lead()).acquired == [(2, 3, 1)]

    async def test_a_negative_start_that_is_not_undecided_means_the_beginning(
        self, stage: TopicLeading
    ) -> None:
        stage.keeper.initialise("group", 1, TOPIC_ID, 0, -5, 9)
        assert stage.lead().core.spso == 0

    async def test_end_the_state(self, stage: TopicLeading) -> None:
        acknowledge(held(stage), 0, 3)
        assert stage.keeper.delete("group", 1, TOPIC_ID, 0).error is None
        assert not stage.bench.coordinator.holds(stage.key())
        assert stage.lead().core.spso == 0

    async def test_unwritten_changes_of_the_last_leader_are_never_written(self, stage: TopicLeading) -> None:
        """Even if the epoch does not distinguish the states: an administrator's reset does not raise it."""
        leader = held(stage)
        stage.bench.log.held = True
        written, waiting = acknowledge(leader, 0, 0), acknowledge(leader, 1, 1)
        reset = stage.keeper.initialise("group", 1, TOPIC_ID, 0, 0, leader.image.state_epoch)
        stage.release_all()
        assert written.error is None
        assert code_of(waiting) is ErrorCode.not_leader_or_follower
        assert (reset.done, reset.error) == (True, None)
        assert stage.fetch(stage.lead()).acquired == [(0, 3, 1)]

    async def test_a_log_start_that_moved_during_its_last_write_is_never_written(
        self, stage: TopicLeading
    ) -> None:
        leader = held(stage)
        stage.bench.log.held = True
        acknowledge(leader, 0, 0)
        stage.keeper.initialise("group", 1, TOPIC_ID, 0, 3, leader.image.state_epoch)
        stage.log.delete_records(2)
        stage.release_all()
        assert stage.lead().core.spso == 3

    async def test_unwritten_changes_are_not_written_after_a_deletion(self, stage: TopicLeading) -> None:
        leader = held(stage)
        stage.bench.log.held = True
        acknowledge(leader, 0, 0)
        waiting = acknowledge(leader, 1, 1)
        stage.keeper.delete("group", 1, TOPIC_ID, 0)
        stage.keeper.initialise("group", 1, TOPIC_ID, 0, 0, leader.image.state_epoch)
        stage.release_all()
        assert code_of(waiting) is ErrorCode.not_leader_or_follower
        assert stage.fetch(stage.lead()).acquired == [(0, 3, 1)]

    async def test_writes_that_waited_when_its_log_was_reopened_are_dropped(
        self, stage: TopicLeading
    ) -> None:
        leader = held(stage)
        stage.bench.log.held = True
        written, waiting = acknowledge(leader, 0, 0), acknowledge(leader, 1, 1)
        await stage.reopen(records_left=4)
        stage.release_all()
        assert written.error is None
        assert code_of(waiting) is ErrorCode.not_leader_or_follower
        assert stage.fetch(stage.lead()).acquired == [(1, 3, 1)]

    async def test_draining_waits_for_writes_under_way(self, stage: TopicLeading) -> None:
        ticket = acknowledge(held(stage), 0, 0)
        await stage.topic_store.drained()
        assert ticket.done
