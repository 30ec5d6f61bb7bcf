"""The whole coordinator: slow and failing appends, loading, and restarts that keep all written state."""

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.coordinator.group.group_coordinator import TIMER_RETRY_MS
from barnabas.coordinator.replay.interfaces import StoredRecord
from barnabas.coordinator.share_group.offsets import TopicOffsets
from barnabas.coordinator.share_group.share_group import ShareGroup
from barnabas.protocol.errors import ApiError, ErrorCode
from tests.coordinator.group.partition_count import partition_of_group
from tests.coordinator.share_group.simulated_coordinator import GROUP, TOPIC, Simulation, durable_state
from tests.coordinator.simulated_log import error_of, take_all


def test_replies_come_in_order_when_appends_are_slow() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 2)
    simulation.log.held = True
    first, second = simulation.submit("a", 0, [TOPIC]), simulation.submit("b", 0, [TOPIC])
    assert (first.done, second.done) == (False, False)
    assert simulation.groups.list_groups() == []
    simulation.log.release()
    assert first.result().assignment == {topic_id: (0, 1)}
    assert not second.done
    simulation.log.release()
    assert second.result().member_epoch == 2


async def test_a_reply_in_flight_can_be_awaited() -> None:
    simulation = Simulation()
    simulation.log.held = True
    reply = simulation.submit("a", 0, [TOPIC])
    reply.when_done(lambda _: None)
    simulation.log.release()
    assert (await reply).member_epoch == 2


def test_groups_of_other_partitions_do_not_wait() -> None:
    simulation = Simulation()
    simulation.log.held = True
    slow = simulation.submit("a", 0, [TOPIC], group_id="orders")
    simulation.log.held = False
    simulation.log.waiting.append(simulation.log.waiting.pop())
    held = simulation.log.waiting
    simulation.log.waiting = []
    assert simulation.join("a", group_id="billing").member_epoch == 2
    assert not slow.done
    simulation.log.waiting = held
    simulation.log.release()
    assert slow.done


def test_a_steady_heartbeat_waits_behind_an_append_in_flight() -> None:
    simulation = Simulation()
    simulation.join("a")
    simulation.heartbeat("a", 2)
    simulation.log.held = True
    simulation.submit("b", 0, [TOPIC])
    steady = simulation.submit("a", 2)
    assert not steady.done
    simulation.log.release()
    assert steady.result().member_epoch == 2


def test_a_failed_append_leaves_the_group_as_it_was() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC, 2)
    simulation.join("a")
    before = durable_state(simulation.group())
    simulation.log.failing = True
    for reply in (
        simulation.submit("b", 0, [TOPIC]),
        simulation.submit("a", 2, ["other"]),
        simulation.submit("a", -1),
    ):
        assert error_of(reply) is ErrorCode.coordinator_not_available
    assert simulation.has_member("a")
    assert not simulation.has_member("b")
    simulation.log.failing = False
    assert simulation.heartbeat("a", 2).member_epoch == 2
    assert durable_state(simulation.group()) == before


def test_a_removal_whose_append_fails_late_is_tried_again() -> None:
    simulation = Simulation()
    simulation.join("a")
    simulation.log.held = True
    simulation.advance(45_000)
    simulation.log.fail_waiting()
    assert simulation.has_member("a")
    simulation.advance(TIMER_RETRY_MS)
    assert not simulation.has_member("a")


def test_heartbeats_are_refused_until_the_groups_are_loaded() -> None:
    simulation = Simulation(loaded=False)
    assert error_of(simulation.submit("a", 0, [TOPIC])) is ErrorCode.coordinator_load_in_progress
    simulation.load()
    assert simulation.join("a").member_epoch == 2


def test_a_partition_is_loaded_one_record_per_step_and_refused_before_the_last() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC, 2)
    simulation.join("a")
    partition = partition_of_group(GROUP)
    stored = simulation.log.stored(partition)
    simulation.groups.unload(partition)
    groups = simulation.groups
    step_count = 0
    for _ in groups.load(partition, stored):
        step_count += 1
        simulation.advance(60_000)
        assert error_of(simulation.submit("a", 2)) is ErrorCode.coordinator_load_in_progress
        assert groups.list_groups() == []
        assert (groups.share.incarnation(GROUP), groups.share.group_epoch(GROUP)) == (None, 0)
        assert groups.share.initialised_partitions(GROUP) == {}
    assert step_count == len(stored) > 2
    assert [group.group_id for group in groups.list_groups()] == [GROUP]
    assert groups.share.initialised_partitions(GROUP)
    simulation.advance(40_000)
    assert simulation.has_member("a"), "its session began with the last step"


def test_a_partly_loaded_partition_is_forgotten() -> None:
    simulation = Simulation()
    simulation.join("a")
    partition = partition_of_group(GROUP)
    stored = simulation.log.stored(partition)
    simulation.groups.unload(partition)
    steps = simulation.groups.load(partition, stored)
    next(steps)
    simulation.groups.unload(partition)
    take_all(simulation.groups.load(partition, ()))
    assert simulation.groups.list_groups() == []
    assert simulation.groups.next_deadline_ms() is not None
    assert simulation.coordinator.next_deadline_ms() is None


def test_members_keep_their_epochs_over_a_restart_and_their_sessions_begin_anew() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 2)
    simulation.join("a")
    simulation.advance(40_000)
    simulation.restart()
    simulation.advance(40_000)
    result = simulation.heartbeat("a", 2)
    assert (result.member_epoch, result.assignment) == (2, None)
    assert simulation.join("a").assignment == {topic_id: (0, 1)}
    assert len(simulation.log.batches) == 1
    simulation.advance(45_000)
    assert not simulation.has_member("a")


def test_records_of_others_are_passed_over_at_load() -> None:
    simulation = Simulation(loaded=False)
    streams_group_key = b"\x00\x11" + b"\x00\x05group"
    foreign = [StoredRecord(0, None, b"x"), StoredRecord(1, streams_group_key, b"\x00\x00")]
    for partition in range(50):
        take_all(simulation.groups.load(partition, foreign))
    assert simulation.groups.list_groups() == []


def test_only_the_groups_of_a_changed_topic_look_again() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC)
    simulation.catalog.create("other")
    simulation.join("a", group_id="g1")
    simulation.join("a", "other", group_id="g2")
    simulation.catalog.grow(TOPIC, 2)
    simulation.catalog.grow("other", 2)
    for group_id in ("g1", "g2"):
        simulation.coordinator.on_metadata_changed([TOPIC])
        simulation.advance(1_000)
        simulation.heartbeat("a", 2, group_id=group_id)
    assert simulation.group("g1").group_epoch == 3


MEMBERS = ("a", "b", "c")
TOPICS = ("x", "y", "z")
ACTION = st.one_of(
    st.tuples(st.just("join"), st.sampled_from(MEMBERS), st.sets(st.sampled_from(TOPICS), min_size=1)),
    st.tuples(st.just("beat"), st.sampled_from(MEMBERS), st.none() | st.sets(st.sampled_from(TOPICS))),
    st.tuples(st.just("leave"), st.sampled_from(MEMBERS), st.none()),
    st.tuples(st.just("wait"), st.sampled_from((100, 1_000, 20_000, 50_000)), st.none()),
    st.tuples(st.just("create"), st.sampled_from(TOPICS), st.integers(1, 4)),
    st.tuples(st.just("drop"), st.sampled_from(TOPICS), st.none()),
    st.tuples(st.just("alter"), st.sampled_from(TOPICS), st.integers(0, 3)),
    st.tuples(st.just("forget"), st.sampled_from(TOPICS), st.none()),
    st.tuples(st.just("delete"), st.none(), st.none()),
    st.tuples(st.just("fail"), st.booleans(), st.none()),
    st.tuples(st.just("break"), st.sets(st.integers(0, 3), max_size=2), st.none()),
    st.tuples(st.just("restart"), st.none(), st.none()),
)


class Story:
    """A group's life by random actions, with the last answer to each member."""

    def __init__(self) -> None:
        self.simulation = Simulation()
        self.member_epochs: dict[str, int] = {}
        self.group_epoch = 0

    def act(self, action: str, subject: Any, detail: Any) -> None:
        # A refusal is an answer; the test checks the state after it.
        with suppress(ApiError):
            self._act(action, subject, detail)

    def _act(self, action: str, subject: Any, detail: Any) -> None:
        simulation, coordinator = self.simulation, self.simulation.coordinator
        match action:
            case "join":
                self._beat(subject, 0, sorted(detail))
            case "beat":
                topics = None if detail is None else sorted(detail)
                self._beat(subject, self.member_epochs.get(subject, 1), topics)
            case "leave":
                simulation.leave(subject)
            case "wait":
                simulation.advance(subject)
            case "create":
                self._create_or_grow(subject, detail)
            case "drop":
                self._drop(subject)
            case "alter":
                offsets = [TopicOffsets(subject, [(detail, 5)])]
                coordinator.alter_offsets(GROUP, offsets, wall_ms=simulation.wall_ms).result()
            case "forget":
                coordinator.delete_offsets(GROUP, [subject]).result()
            case "delete":
                coordinator.delete_group(GROUP).result()
                self.group_epoch = 0
            case "fail":
                simulation.log.failing = subject
            case "break":
                simulation.share_state.failing_partitions = subject
            case _:
                simulation.restart()

    def _beat(self, member_id: str, member_epoch: int, topics: list[str] | None) -> None:
        result = self.simulation.heartbeat(member_id, member_epoch, topics)
        self.member_epochs[member_id] = result.member_epoch

    def _create_or_grow(self, name: str, count: int) -> None:
        shape = self.simulation.catalog.topic_by_name(name)
        if shape is None:
            self.simulation.catalog.create(name, count)
        else:
            self.simulation.catalog.grow(name, max(count, shape.partition_count))
        self.simulation.coordinator.on_metadata_changed([name])

    def _drop(self, name: str) -> None:
        if self.simulation.catalog.topic_by_name(name) is not None:
            topic_id = self.simulation.catalog.delete(name)
            self.simulation.coordinator.on_topics_deleted([topic_id])
            self.simulation.coordinator.on_metadata_changed([name])

    def check(self) -> None:
        live, restarted = self.simulation.coordinator, self.simulation.restarted()
        assert live.list_groups() == restarted.list_groups()
        for listed in live.list_groups():
            group_id = listed.group_id
            assert live.describe(group_id) == restarted.describe(group_id)
            assert live.incarnation(group_id) == restarted.incarnation(group_id)
            assert live.initialised_partitions(group_id) == restarted.initialised_partitions(group_id)
            self._check_epochs(self.simulation.group(group_id))

    def _check_epochs(self, group: ShareGroup) -> None:
        assert group.assignment_epoch <= group.group_epoch >= self.group_epoch
        assert all(member.member_epoch <= group.assignment_epoch for member in group.members.values())
        assert group.target.keys() <= group.members.keys()
        self.group_epoch = group.group_epoch


@settings(max_examples=150)
@given(actions=st.lists(ACTION, max_size=40))
def test_replaying_the_log_gives_the_live_state_and_epochs_never_go_back(
    actions: list[tuple[str, Any, Any]],
) -> None:
    story = Story()
    for action in actions:
        story.act(*action)
        story.check()


@settings(max_examples=60)
@given(actions=st.lists(ACTION, max_size=25))
def test_when_all_is_calm_members_hold_all_partitions_of_their_topics(
    actions: list[tuple[str, Any, Any]],
) -> None:
    story = Story()
    for action in actions:
        story.act(*action)
    simulation = story.simulation
    simulation.log.failing = False
    simulation.share_state.failing_partitions = set()
    simulation.advance(60_000)
    for name in TOPICS:
        story.act("create", name, 2)
    for member_id in MEMBERS:
        simulation.join(member_id, *TOPICS)
    for _ in range(3):
        simulation.advance(1_000)
        for member_id in MEMBERS:
            simulation.join(member_id, *TOPICS)
    held = {
        (topic.topic_name, partition)
        for member in simulation.coordinator.describe(GROUP).members
        for topic in member.assignment
        for partition in topic.partitions
    }
    shapes = [simulation.catalog.topic_by_name(name) for name in TOPICS]
    assert held == {
        (shape.name, index) for shape in shapes if shape for index in range(shape.partition_count)
    }
    before = len(simulation.log.batches)
    for member_id in MEMBERS:
        simulation.join(member_id, *TOPICS)
    assert len(simulation.log.batches) == before


def test_unloading_a_partition_forgets_its_groups_and_sessions_alone_until_it_is_loaded_again() -> None:
    simulation = Simulation()
    simulation.join("a")
    simulation.join("a", group_id="elsewhere")
    partition = partition_of_group(GROUP)
    assert partition != partition_of_group("elsewhere")
    before = durable_state(simulation.group())
    simulation.groups.unload(partition)
    assert error_of(simulation.submit("a", 2)) is ErrorCode.coordinator_load_in_progress
    assert simulation.coordinator.incarnation(GROUP) is None
    assert [group.group_id for group in simulation.coordinator.list_groups()] == ["elsewhere"]
    simulation.leave("a", group_id="elsewhere")
    assert simulation.coordinator.next_deadline_ms() is None
    take_all(simulation.groups.load(partition, simulation.log.stored(partition)))
    assert simulation.heartbeat("a", 2).member_epoch == 2
    assert durable_state(simulation.group()) == before


def test_records_lost_with_the_log_are_lost_to_the_group_once_it_is_loaded_again() -> None:
    simulation = Simulation()
    simulation.join("a")
    partition = partition_of_group(GROUP)
    kept = simulation.log.stored(partition)
    simulation.join("b")
    simulation.groups.unload(partition)
    take_all(simulation.groups.load(partition, kept))
    assert (simulation.has_member("a"), simulation.has_member("b")) == (True, False)
    assert error_of(simulation.submit("b", 2)) is ErrorCode.unknown_member_id


def test_a_removal_that_an_unloading_refuses_leaves_no_session_behind() -> None:
    simulation = Simulation()
    simulation.join("a")
    simulation.log.held = True
    simulation.advance(45_000)
    simulation.groups.unload(partition_of_group(GROUP))
    assert simulation.coordinator.next_deadline_ms() is None
    simulation.log.release()
    assert simulation.groups.list_groups() == []


def test_the_epoch_of_an_unknown_group_is_0() -> None:
    simulation = Simulation()
    assert simulation.coordinator.group_epoch(GROUP) == 0
    simulation.join("a")
    assert simulation.coordinator.group_epoch(GROUP) == simulation.group().group_epoch == 2
