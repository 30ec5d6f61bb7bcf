"""The set of leaders: loading, forgetting, following the log, and releasing segments."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from barnabas.protocol.control_record import ShareCheckpoint
from barnabas.protocol.errors import ApiError
from barnabas.runtime.completion import Completion
from barnabas.share.leader.share_partitions import FAILURE_TOLD_MS
from barnabas.storage.errors import LogOffline
from barnabas.storage.format.share_image import ShareStateImage
from barnabas.storage.log_config import LogConfig
from tests.share.leader.leading import LOCK_MS, PARTITION, Leading, acknowledge, leading

SMALL_SEGMENTS = LogConfig(segment_bytes=400, retention_ms=1000)


async def test_a_leader_is_loaded_once_and_found_from_then_on() -> None:
    stage = await leading()
    key = stage.key()
    assert stage.share_partitions.get(key) is None
    leader = stage.share_partitions.lead(key, stage.log)
    assert stage.share_partitions.lead(key, stage.log) is leader
    assert stage.share_partitions.get(key) is leader
    assert list(stage.share_partitions) == [leader]


async def test_a_group_that_has_recorded_nothing_is_undecided_at_its_epoch() -> None:
    stage = await leading()
    leader = stage.share_partitions.lead(stage.key(), stage.log)
    assert leader is not None
    assert not leader.core.is_initialised
    assert (leader.image.state_epoch, leader.image.group_incarnation) == (7, 1)
    assert leader.lag() == -1


async def test_a_forgotten_leader_is_closed_and_another_is_loaded() -> None:
    stage = await leading()
    stage.produce(2)
    leader = stage.lead()
    stage.fetch(leader)
    stage.share_partitions.forget(stage.key())
    assert leader.closed
    assert leader.next_deadline_ms() is None
    stage.timers.advance(LOCK_MS)
    another = stage.lead()
    assert another is not leader
    assert stage.fetch(another).acquired == [(0, 1, 1)], "the lock of the forgotten leader has no effect"


@pytest.mark.parametrize(
    ("error", "told", "logged"),
    [
        (LogOffline("the disk is gone"), LogOffline, []),
        (ZeroDivisionError("a defect"), ApiError, ["the state of a share partition could not be loaded"]),
    ],
)
@pytest.mark.interpreted
async def test_a_load_that_fails_wakes_no_fetch_and_is_reported_once(
    monkeypatch: pytest.MonkeyPatch, error: Exception, told: type[Exception], logged: list[str]
) -> None:
    """If they were woken, the waiting requests would load again and fail again, as fast as the loop can."""
    stage = await leading()
    loading: Completion[ShareStateImage] = Completion()
    woken: list[object] = []

    def load(*_: object) -> Completion[ShareStateImage]:
        return loading

    monkeypatch.setattr(stage.store, "load", load)
    monkeypatch.setattr(stage.purgatory, "wake", woken.append)
    assert stage.share_partitions.lead(stage.key(), stage.log) is None
    under_way = stage.share_partitions.under_way(stage.key())
    assert under_way is not None
    with capture_logs() as lines:
        loading.fail(error)
    assert (under_way.done, woken) == (True, [])
    assert [line["event"] for line in lines if line["log_level"] == "error"] == logged
    with pytest.raises(told):
        stage.share_partitions.lead(stage.key(), stage.log)


class TestAFailureThatNobodyHasBeenToldOf:
    @pytest.fixture
    async def stage(self, monkeypatch: pytest.MonkeyPatch) -> Leading:
        stage = await leading()
        loading: Completion[ShareStateImage] = Completion()

        def load(*_: object) -> Completion[ShareStateImage]:
            return loading

        with monkeypatch.context() as patched:
            patched.setattr(stage.store, "load", load)
            assert stage.share_partitions.lead(stage.key(), stage.log) is None
        loading.fail(LogOffline("the disk is gone"))
        return stage

    async def test_is_reported_for_a_while(self, stage: Leading) -> None:
        stage.clock.now_ms += FAILURE_TOLD_MS - 1
        with pytest.raises(LogOffline):
            stage.share_partitions.lead(stage.key(), stage.log)

    async def test_has_no_effect_on_a_later_fetch(self, stage: Leading) -> None:
        stage.clock.now_ms += FAILURE_TOLD_MS
        assert stage.share_partitions.lead(stage.key(), stage.log) is not None

    async def test_goes_with_the_log(self, stage: Leading) -> None:
        stage.share_partitions.forget_partition(PARTITION)
        assert stage.share_partitions.lead(stage.key(), stage.log) is not None


async def test_forgetting_a_partition_without_a_leader_does_nothing() -> None:
    stage = await leading()
    stage.share_partitions.forget(stage.key())
    stage.share_partitions.forget_topic(PARTITION.topic_id, 3)
    assert list(stage.share_partitions) == []


async def test_with_its_topic_all_groups_leaders_go() -> None:
    stage = await leading()
    leaders = [stage.lead("group"), stage.lead("other")]
    store = stage.partition_store
    stage.share_partitions.forget_topic(PARTITION.topic_id, 1)
    assert [leader.closed for leader in leaders] == [True, True]
    assert list(stage.share_partitions) == []
    assert stage.partition_store is not store


async def test_locks_expire_by_the_brokers_deadlines() -> None:
    stage = await leading()
    stage.produce(2)
    leader = stage.lead()
    stage.fetch(leader)
    assert stage.fetch(leader, member_id="other").acquired == ()
    stage.timers.advance(LOCK_MS)
    assert stage.fetch(leader, member_id="other").acquired == [(0, 1, 2)]


async def test_leaders_follow_the_log_start() -> None:
    stage = await leading()
    stage.produce(4)
    one, other = stage.lead("group"), stage.lead("other")
    stage.fetch(other)
    acknowledge(other, 0, 3)
    stage.log.delete_records(2)
    assert (one.core.spso, other.core.spso) == (2, 4)
    newest = stage.records("group")[-1][1]
    assert isinstance(newest, ShareCheckpoint)
    assert newest.start_offset == 2


async def test_a_leader_that_is_loaded_later_follows_it_as_well() -> None:
    stage = await leading()
    stage.produce(4)
    stage.lead()
    stage.share_partitions.forget(stage.key())
    stage.log.delete_records(3)
    assert stage.lead().core.spso == 3


async def test_a_under_way_holds_the_leader_back_until_the_latest_has_ended() -> None:
    stage = await leading()
    leader = stage.lead()
    first, second = Completion[None](), Completion[None]()
    stage.share_partitions.hold_back(stage.key(), first)
    assert leader.closed
    stage.share_partitions.hold_back(stage.key(), second)
    first.complete(None)
    assert stage.share_partitions.under_way(stage.key()) is second
    second.complete(None)
    assert stage.share_partitions.under_way(stage.key()) is None
