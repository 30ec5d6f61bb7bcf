"""Topics, settings and groups for an administrator, against the real broker in virtual time."""

from __future__ import annotations

import pytest

from barnabas.client import (
    BrokerError,
    BrokerUnavailableError,
    MisuseError,
    TopicPartition,
    UnknownTopicError,
)
from barnabas.client.admin.connection import AdminConnection, check_code
from barnabas.client.admin.group_positions import (
    Bounds,
    GroupPosition,
    fetch_bounds,
    fetch_group_positions,
    fetch_offsets_at,
    set_group_positions,
)
from barnabas.client.admin.groups import (
    CLASSIC,
    CONSUMER,
    SHARE,
    delete_group,
    describe_group,
    find_group,
    list_groups,
)
from barnabas.client.admin.settings import (
    ALL_BROKERS,
    Resource,
    ResourceType,
    Source,
    alter_settings,
    describe_after,
    describe_settings,
)
from barnabas.client.admin.topics import add_partitions, create_topic, delete_topic, describe_topics
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.client.holding import holding, topic_of
from tests.client.scripted_broker import OTHER_PORT, answer, listen_as_only_node
from tests.client.virtual_world import ADDRESS, GROUP, TOPIC, World, client_loop, virtually

BILLS = "bills"
FIRST = TopicPartition(TOPIC, 0)


def administrator() -> AdminConnection:
    return AdminConnection(ADDRESS)


@virtually
async def test_a_topic_is_created_described_grown_and_deleted(world: World) -> None:
    async with administrator() as admin:
        assert await create_topic(admin, BILLS, partition_count=2, settings={"retention.ms": "5000"}) == 2
        (topic,) = await describe_topics(admin, [BILLS])
        assert (topic.name, topic.is_internal) == (BILLS, False)
        assert [one.partition for one in topic.partitions] == [0, 1]
        assert all(one.leader in one.in_sync_replicas for one in topic.partitions)
        await add_partitions(admin, BILLS, 3)
        assert len((await describe_topics(admin, [BILLS]))[0].partitions) == 3
        await delete_topic(admin, BILLS)
        with pytest.raises(UnknownTopicError):
            await describe_topics(admin, [BILLS])


@virtually
async def test_a_request_that_is_only_checked_creates_nothing(world: World) -> None:
    async with administrator() as admin:
        await create_topic(admin, BILLS, partition_count=2, validate_only=True)
        assert BILLS not in [one.name for one in await describe_topics(admin)]
        with pytest.raises(BrokerError) as refused:
            await create_topic(admin, BILLS, settings={"nonsense": "1"}, validate_only=True)
    assert refused.value.code is ErrorCode.invalid_config


@virtually
async def test_missing_topics_are_errors(world: World) -> None:
    async with administrator() as admin:
        for change in (delete_topic(admin, "nowhere"), add_partitions(admin, "nowhere", 2)):
            with pytest.raises(UnknownTopicError):
                await change
        with pytest.raises(UnknownTopicError):
            await describe_settings(admin, Resource(ResourceType.TOPIC, "nowhere"))


@virtually
async def test_a_setting_has_the_source_of_its_value(world: World) -> None:
    await topic_of(world)
    topic = Resource(ResourceType.TOPIC, TOPIC)

    async def retention(admin: AdminConnection) -> tuple[str | None, Source]:
        found = {one.name: (one.value, one.source) for one in await describe_settings(admin, topic)}
        return found["retention.ms"]

    async with administrator() as admin:
        default = await retention(admin)
        assert default[1] is Source.DEFAULT
        await alter_settings(admin, topic, {"retention.ms": "5000"})
        assert await retention(admin) == ("5000", Source.TOPIC)
        await alter_settings(admin, topic, {"retention.ms": None})
        assert await retention(admin) == default


Described = tuple[str | None, Source]
"""The value of a setting and its source."""


class LateBroker:
    """Answers DescribeConfigs with old values of a topic's retention first, and with a new one at last."""

    def __init__(self, *described: Described, then: Described) -> None:
        self.described = [*described, then]

    def describe(self, version: int, _: bytes) -> bytes:
        value, source = self.described.pop(0) if len(self.described) > 1 else self.described[0]
        setting: dict[str, object] = {"name": "retention.ms", "value": value, "config_source": int(source)}
        setting |= {"read_only": False, "is_sensitive": False, "synonyms": []}
        result = {"error_code": ErrorCode.none, "resource_name": TOPIC, "configs": [setting]}
        return answer("describe_configs", version, results=[result])

    async def after(self, value: str | None) -> Described:
        """The setting that the administrator sees after a change of the first one to `value`."""
        await listen_as_only_node({ApiKey.DESCRIBE_CONFIGS: (4, self.describe)})
        async with AdminConnection(f"broker:{OTHER_PORT}") as admin:
            topic = Resource(ResourceType.TOPIC, TOPIC)
            before = await describe_settings(admin, topic)
            (setting,) = await describe_after(admin, topic, {"retention.ms": value}, before)
        return setting.value, setting.source


OLD = ("5000", Source.TOPIC)
NEW = ("7000", Source.TOPIC)
DEFAULT = ("604800000", Source.DEFAULT)


@virtually
async def test_a_change_is_described_once_the_broker_knows_it(_: World) -> None:
    assert await LateBroker(OLD, OLD, then=NEW).after("7000") == NEW


@virtually
async def test_a_deletion_is_described_once_the_broker_knows_it(_: World) -> None:
    assert await LateBroker(OLD, OLD, then=DEFAULT).after(None) == DEFAULT


@virtually
async def test_a_broker_may_write_a_new_value_in_another_way(_: World) -> None:
    begin = client_loop().time()
    assert await LateBroker(OLD, OLD, then=NEW).after("07000") == NEW
    assert client_loop().time() - begin < 1


@virtually
async def test_a_change_that_cannot_be_seen_is_waited_for_two_seconds(_: World) -> None:
    begin = client_loop().time()
    assert await LateBroker(then=NEW).after("07000") == NEW
    assert 2 <= client_loop().time() - begin < 3


@pytest.mark.parametrize(
    ("resource", "name", "value"),
    [
        (Resource(ResourceType.TOPIC, TOPIC), "cleanup.policy", "compact, delete"),
        (Resource(ResourceType.GROUP, GROUP), "share.auto.offset.reset", "earliest"),
        (Resource(ResourceType.BROKER, "1"), "message.max.bytes", "5000"),
        (Resource(ResourceType.BROKER, ALL_BROKERS), "message.max.bytes", "5000"),
    ],
)
def test_a_change_of_each_resource_is_known_at_once(resource: Resource, name: str, value: str) -> None:
    @virtually
    async def change_and_delete(world: World) -> None:
        await topic_of(world)
        async with administrator() as admin:
            for changes in ({name: value}, {name: None}):
                before = await describe_settings(admin, resource)
                await alter_settings(admin, resource, changes)
                begin = client_loop().time()
                await describe_after(admin, resource, changes, before)
                assert client_loop().time() - begin < 0.05

    change_and_delete()


@virtually
async def test_brokers_have_settings_each_and_together(world: World) -> None:
    async with administrator() as admin:
        (node_id,) = admin.cluster.view.brokers
        broker = Resource(ResourceType.BROKER, str(node_id))
        await alter_settings(admin, Resource(ResourceType.BROKER, ALL_BROKERS), {"message.max.bytes": "5000"})
        found = {one.name: one for one in await describe_settings(admin, broker)}
        assert found["message.max.bytes"][1:3] == ("5000", Source.ALL_BROKERS)
        for name, complaint in (("99", "has no broker 99"), ("one", "not the id of a broker")):
            with pytest.raises(MisuseError, match=complaint):
                await describe_settings(admin, Resource(ResourceType.BROKER, name))


@virtually
async def test_a_share_group_is_listed_and_described_with_its_position(world: World) -> None:
    await topic_of(world, "a", "b", "c")
    async with holding(world, 2) as (consumer, held), administrator() as admin:
        held[0].accept()
        await consumer.commit()
        (listed,) = await list_groups(admin)
        assert listed == (GROUP, SHARE, "Stable")
        group = await describe_group(admin, listed)
        (member,) = group.members
        assert (member.client_id, list(member.assignment)) == ("app", [FIRST])
        assert await fetch_group_positions(admin, GROUP, SHARE) == {FIRST: GroupPosition(1, 3, 2)}
        with pytest.raises(BrokerError) as refused:
            await delete_group(admin, GROUP)
    assert refused.value.code is ErrorCode.non_empty_group


@virtually
async def test_an_empty_share_group_is_moved_and_deleted(world: World) -> None:
    await topic_of(world, "a", "b", "c")
    async with holding(world, 2) as (consumer, held):
        held[0].accept()
        await consumer.commit()
    async with administrator() as admin:
        await set_group_positions(admin, GROUP, SHARE, {FIRST: 0})
        assert await fetch_group_positions(admin, GROUP, SHARE) == {FIRST: GroupPosition(0, 3, 3)}
        await delete_group(admin, GROUP)
        assert await find_group(admin, GROUP) is None


@virtually
async def test_offsets_that_an_administrator_commits_make_a_group(world: World) -> None:
    await topic_of(world, "a", "b", "c")
    async with administrator() as admin:
        await set_group_positions(admin, "reports", CONSUMER, {FIRST: 1})
        assert await fetch_group_positions(admin, "reports", CONSUMER) == {FIRST: GroupPosition(1, 3, 2)}
        listed = await find_group(admin, "reports")
        assert listed is not None
        assert (listed.type, listed.state) == (CLASSIC, "Empty")
        assert list((await describe_group(admin, listed)).members) == []


@virtually
async def test_records_below_the_log_start_are_no_lag(world: World) -> None:
    await topic_of(world, "a", "b", "c", "d")
    async with administrator() as admin:
        await set_group_positions(admin, "reports", CONSUMER, {FIRST: 1})
        await set_group_positions(admin, GROUP, SHARE, {FIRST: 1})
        await world.delete_records(TOPIC, 3)
        assert await fetch_group_positions(admin, "reports", CONSUMER) == {FIRST: GroupPosition(1, 4, 1)}
        assert await fetch_group_positions(admin, GROUP, SHARE) == {FIRST: GroupPosition(3, 4, 1)}


@virtually
async def test_the_position_in_a_deleted_topic_has_no_end(world: World) -> None:
    await topic_of(world, "a")
    async with administrator() as admin:
        await create_topic(admin, BILLS, partition_count=1)
        gone = TopicPartition(BILLS, 0)
        await set_group_positions(admin, "reports", CONSUMER, {FIRST: 0, gone: 0})
        await delete_topic(admin, BILLS)
        positions = await fetch_group_positions(admin, "reports", CONSUMER)
    assert positions[FIRST] == GroupPosition(0, 1, 1)
    assert positions.get(gone, GroupPosition(0, None, None)) == GroupPosition(0, None, None)


@virtually
async def test_the_bounds_of_partitions_and_the_offsets_of_times_are_found(world: World) -> None:
    await topic_of(world, "a", "b")
    async with administrator() as admin:
        assert await fetch_bounds(admin, [FIRST, TopicPartition(TOPIC, 9)]) == {FIRST: Bounds(0, 2)}
        assert await fetch_offsets_at(admin, [FIRST], 0) == {FIRST: 0}
        assert await fetch_offsets_at(admin, [FIRST], 1 << 45) == {FIRST: None}


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.coordinator_load_in_progress, BrokerUnavailableError),
        (ErrorCode.not_controller, BrokerUnavailableError),
        (ErrorCode.unknown_topic_or_partition, BrokerError),
        (ErrorCode.invalid_config, BrokerError),
    ],
)
def test_temporary_errors_are_told_from_lasting_ones(code: ErrorCode, error: type[Exception]) -> None:
    check_code(ErrorCode.none, None)
    with pytest.raises(error, match="the reason"):
        check_code(code, "the reason")
