"""Every change that a client can request and get confirmed, besides records: its request, and the way to see
it.

`CHANGES` has one for each API that changes anything. The others are in `NO_CHANGE`, with the reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG
from barnabas.protocol.record_inspection import DescribedState, RecordAction
from tests.conformance.harness import Lab, batch, settle
from tests.conformance.records_of_a_group import alter, describe
from tests.conformance.share_member import ShareMember
from tests.conformance.state_requests import delete as delete_state
from tests.conformance.state_requests import initialise, summary, with_topic, write
from tests.conformance.transacting import ID, TOPIC, Transacting, committed

OK = ErrorCode.none
SHARE_GROUP, GROUP = "share-group", "billing"
_STRANGER = {"producer_id": 4_242, "producer_epoch": 0}

Step = Callable[[Lab], Awaitable[None]]
Look = Callable[[Lab], Awaitable[Any]]

NO_CHANGE = {
    "of records; see the table of log.flush": {"produce", "share_fetch", "share_acknowledge"},
    "reads": {
        *("fetch", "list_offsets", "offset_fetch", "find_coordinator", "describe_groups", "list_groups"),
        *("api_versions", "offset_for_leader_epoch", "describe_configs", "describe_log_dirs"),
        *("list_partition_reassignments", "describe_client_quotas", "describe_user_scram_credentials"),
        *("describe_quorum", "fetch_snapshot", "describe_cluster", "describe_producers"),
        *("describe_transactions", "list_transactions", "consumer_group_describe", "list_config_resources"),
        *("describe_topic_partitions", "share_group_describe", "read_share_group_state"),
        *("read_share_group_state_summary", "describe_share_group_offsets", "describe_share_records"),
        "describe_share_record_history",
    },
    "of members, which join again": {
        *("join_group", "sync_group", "heartbeat", "leave_group"),
        *("consumer_group_heartbeat", "share_group_heartbeat"),
    },
    "nothing to change on one node": {"elect_leaders", "alter_partition_reassignments"},
    "about the connection itself": {"sasl_handshake", "sasl_authenticate"},
    "refused without an authorizer": {"describe_acls", "create_acls", "delete_acls"},
}


class Change(NamedTuple):
    """A change by one API.

    `before` prepares it and `ask` requests it. `look` returns `after` once it is done, and another value
    before. `always` is needed in place of `interval` to survive a loss of power, except for changes of the
    metadata log (`is_metadata`). `store`: the `share.state.store` that it needs.
    """

    api: str
    name: str
    before: Step
    ask: Step
    look: Look
    after: Any
    is_metadata: bool = True
    store: str | None = None


async def _topic(lab: Lab) -> None:
    await lab.create_topic(TOPIC)


async def _records(lab: Lab) -> None:
    await lab.produce(await lab.create_topic(TOPIC), 3, 3)


async def _nothing(lab: Lab) -> None:
    pass


def _check(*codes: Any) -> None:
    assert set(codes) == {OK}, codes


# Topics.


async def _topics(lab: Lab) -> dict[str, int]:
    answer = await lab.admin.ask("metadata", topics=None)
    return {one.name: len(one.partitions) for one in answer.topics if not one.is_internal}


async def _create(lab: Lab) -> None:
    await lab.create_topic(TOPIC, 2)


async def _create_by_metadata(lab: Lab) -> None:
    answer = await lab.admin.ask("metadata", topics=[{"name": TOPIC}], allow_auto_topic_creation=True)
    _check(answer.topics[0].error_code)


async def _delete_topic(lab: Lab) -> None:
    answer = await lab.admin.ask("delete_topics", topics=[{"name": TOPIC}])
    _check(answer.responses[0].error_code)


async def _add_partition(lab: Lab) -> None:
    answer = await lab.admin.ask("create_partitions", topics=[{"name": TOPIC, "count": 3}])
    _check(answer.results[0].error_code)


async def _delete_records(lab: Lab) -> None:
    asked = {"name": TOPIC, "partitions": [{"partition_index": 0, "offset": 4}]}
    answer = await lab.admin.ask("delete_records", topics=[asked])
    _check(answer.topics[0].partitions[0].error_code)


async def _log_start(lab: Lab) -> int:
    asked = {"partition_index": 0, "timestamp": -2, "current_leader_epoch": -1}
    answer = await lab.admin.ask("list_offsets", topics=[{"name": TOPIC, "partitions": [asked]}])
    return int(answer.topics[0].partitions[0].offset)


# Settings.


def _set(api: str, resource_type: int, name: str, setting: str, value: str) -> Step:
    async def ask(lab: Lab) -> None:
        one = {"name": setting, "value": value, **({"config_operation": 0} if api[0] == "i" else {})}
        resource = {"resource_type": resource_type, "resource_name": name, "configs": [one]}
        answer = await lab.admin.ask(api, resources=[resource])
        _check(answer.responses[0].error_code)

    return ask


def _setting(resource_type: int, name: str, setting: str) -> Look:
    async def look(lab: Lab) -> str | None:
        resource = {"resource_type": resource_type, "resource_name": name, "configuration_keys": None}
        answer = await lab.admin.ask("describe_configs", resources=[resource])
        return next((one.value for one in answer.results[0].configs if one.name == setting), None)

    return look


def _settings(api: str) -> list[Change]:
    """One for each kind of resource."""
    wanted = (
        ("of a topic", 2, TOPIC, "retention.ms", "4711"),
        ("of the broker", 4, "1", "log.cleaner.backoff.ms", "20000"),
        ("of all brokers", 4, "", "log.cleaner.backoff.ms", "20000"),
        ("of a group", 32, SHARE_GROUP, "share.heartbeat.interval.ms", "6000"),
    )
    return [
        Change(
            api, f"{api} {who}", _topic, _set(api, kind, name, key, value), _setting(kind, name, key), value
        )
        for who, kind, name, key, value in wanted
    ]


# Quotas, credentials, features.


async def _limit(lab: Lab) -> None:
    entity = [{"entity_type": "client-id", "entity_name": "someone"}]
    entry = {"entity": entity, "ops": [{"key": "producer_byte_rate", "value": 2e4, "remove": False}]}
    answer = await lab.admin.ask("alter_client_quotas", entries=[entry])
    _check(answer.entries[0].error_code)


async def _limits(lab: Lab) -> list[float]:
    answer = await lab.admin.ask("describe_client_quotas", strict=False)
    return [value.value for entry in answer.entries for value in entry.values]


async def _add_user(lab: Lab) -> None:
    salted = hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 4096)
    upsertion = {
        "name": "alice",
        "mechanism": 1,
        "iterations": 4096,
        "salt": b"salt",
        "salted_password": salted,
    }
    answer = await lab.admin.ask("alter_user_scram_credentials", upsertions=[upsertion])
    _check(answer.results[0].error_code)


async def _users(lab: Lab) -> list[str]:
    answer = await lab.admin.ask("describe_user_scram_credentials", users=None)
    return [one.user for one in answer.results]


async def _lower_feature(lab: Lab) -> None:
    update = {"feature": "transaction.version", "max_version_level": 1, "upgrade_type": 2}
    answer = await lab.admin.ask("update_features", feature_updates=[update])
    _check(answer.error_code)


async def _feature(lab: Lab) -> int:
    return lab.broker.metadata.image.features["transaction.version"]


# Groups' offsets.


async def _commit(lab: Lab) -> None:
    asked = {"partition_index": 0, "committed_offset": 2}
    fields = {"group_id": GROUP, "generation_id_or_member_epoch": -1}
    answer = await lab.admin.ask(
        "offset_commit", 9, **fields, topics=[{"name": TOPIC, "partitions": [asked]}]
    )
    _check(answer.topics[0].partitions[0].error_code)


async def _committed_before(lab: Lab) -> None:
    await _records(lab)
    await _commit(lab)


async def _delete_offset(lab: Lab) -> None:
    topics = [{"name": TOPIC, "partitions": [{"partition_index": 0}]}]
    answer = await lab.admin.ask("offset_delete", group_id=GROUP, topics=topics)
    _check(answer.error_code, answer.topics[0].partitions[0].error_code)


async def _delete_group(lab: Lab) -> None:
    answer = await lab.admin.ask("delete_groups", groups_names=[GROUP])
    _check(answer.results[0].error_code)


async def _groups(lab: Lab) -> list[str]:
    answer = await lab.admin.ask("list_groups")
    return sorted(one.group_id for one in answer.groups)


# Share groups.


async def _share_group_before(lab: Lab) -> None:
    """A group without members that begins at 0."""
    partition = TopicIdPartition(await lab.create_topic(TOPIC), 0)
    await lab.produce(partition.topic_id, 3, 3)
    await lab.configure_group(SHARE_GROUP, auto_offset_reset="earliest")
    member = ShareMember(lab.client(), [partition], group_id=SHARE_GROUP)
    await member.join(TOPIC)
    while not await member.take():  # the first fetch records the start offset
        await settle()
    await member.accept(0, 0)
    await member.leave_session()
    await member.heartbeat(-1)
    await settle()


async def _set_share_offset(lab: Lab) -> None:
    topic = {"topic_name": TOPIC, "partitions": [{"partition_index": 0, "start_offset": 4}]}
    answer = await lab.admin.ask("alter_share_group_offsets", group_id=SHARE_GROUP, topics=[topic])
    _check(answer.error_code, answer.responses[0].partitions[0].error_code)


async def _held_before(lab: Lab) -> None:
    """A member holds all records; the first is accepted."""
    await _share_group_before(lab)
    member = ShareMember(lab.client(), [_partition(lab)], group_id=SHARE_GROUP)
    await member.join(TOPIC)
    assert await member.take()


def _partition(lab: Lab) -> TopicIdPartition:
    return TopicIdPartition(lab.broker.metadata.image.topics_by_name[TOPIC].topic_id, 0)


async def _archive_record(lab: Lab) -> None:
    answer = await alter(lab, _partition(lab), RecordAction.ARCHIVE, 1, 1, group_id=SHARE_GROUP)
    _check(answer.error_code)


async def _release_record(lab: Lab) -> None:
    answer = await alter(lab, _partition(lab), RecordAction.RELEASE, 1, 1, group_id=SHARE_GROUP)
    _check(answer.error_code)


async def _second_record(lab: Lab) -> tuple[DescribedState, int] | None:
    """State and delivery count of the record at 1; None before the start offset."""
    page = await describe(lab, _partition(lab), group_id=SHARE_GROUP)
    first = page.ranges[0]
    return (first.state, first.delivery_count) if first.first_offset == 1 else None


async def _delete_share_offsets(lab: Lab) -> None:
    topics = [{"topic_name": TOPIC}]
    answer = await lab.admin.ask("delete_share_group_offsets", group_id=SHARE_GROUP, topics=topics)
    _check(answer.error_code, answer.responses[0].error_code)


async def _delete_share_group(lab: Lab) -> None:
    answer = await lab.admin.ask("delete_groups", groups_names=[SHARE_GROUP])
    _check(answer.results[0].error_code)


async def _share_start(lab: Lab) -> int | None:
    """None if the group does not know the topic."""
    answer = await lab.admin.ask(
        "describe_share_group_offsets", groups=[{"group_id": SHARE_GROUP, "topics": None}]
    )
    found = [one.start_offset for topic in answer.groups[0].topics for one in topic.partitions]
    return found[0] if found else None


def _state(*requests: Any) -> Step:
    async def ask(lab: Lab) -> None:
        topic_id = lab.broker.metadata.image.topics_by_name[TOPIC].topic_id
        for api, version, values in requests:
            answer = await lab.another_broker().ask(api, version, **with_topic(values, topic_id))
            _check(answer.results[0].partitions[0].error_code)

    return ask


def _state_before(*requests: Any) -> Step:
    async def before(lab: Lab) -> None:
        await _topic(lab)
        await _state(*requests)(lab)

    return before


async def _state_start(lab: Lab) -> int:
    """-1 if there is no state."""
    topic_id = lab.broker.metadata.image.topics_by_name[TOPIC].topic_id
    api, version, values = summary()
    answer = await lab.another_broker().ask(api, version, **with_topic(values, topic_id))
    return int(answer.results[0].partitions[0].start_offset)


# Transactions.


async def _transaction(lab: Lab) -> str | None:
    answer = await lab.admin.ask("list_transactions")
    states = {one.transactional_id: one.transaction_state for one in answer.transaction_states}
    return states.get(ID)


async def _initialise(lab: Lab) -> None:
    _check(await Transacting(lab.client()).init())


def _in_transaction(ask: Callable[[Lab, dict[str, Any]], Awaitable[None]]) -> Step:
    """With the fields of the present producer of the transactional id."""

    async def step(lab: Lab) -> None:
        known = lab.broker.transactions.coordinator.describe(ID)
        producer_id, producer_epoch = known.producer
        await ask(lab, {"transactional_id": ID, "producer_id": producer_id, "producer_epoch": producer_epoch})

    return step


async def _initialised_before(lab: Lab) -> None:
    await _topic(lab)
    await _initialise(lab)


async def _add_partitions(lab: Lab, producer: dict[str, Any]) -> None:
    fields = {f"v3_and_below_{name}": value for name, value in producer.items()}
    topics = [{"name": TOPIC, "partitions": [0]}]
    answer = await lab.admin.ask("add_partitions_to_txn", 3, **fields, v3_and_below_topics=topics)
    _check(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)


async def _add_offsets(lab: Lab, producer: dict[str, Any]) -> None:
    _check((await lab.admin.ask("add_offsets_to_txn", **producer, group_id=GROUP)).error_code)


async def _begun_before(lab: Lab) -> None:
    await _initialised_before(lab)
    await _in_transaction(_add_partitions)(lab)


async def _end(lab: Lab, producer: dict[str, Any]) -> None:
    _check((await lab.admin.ask("end_txn", **producer, committed=True)).error_code)


async def _commit_offset(lab: Lab, producer: dict[str, Any]) -> None:
    partition = {"partition_index": 0, "committed_offset": 3, "committed_metadata": None}
    topics = [{"name": TOPIC, "partitions": [partition]}]
    answer = await lab.admin.ask("txn_offset_commit", 5, **producer, group_id=GROUP, topics=topics)
    _check(answer.topics[0].partitions[0].error_code)


async def _pending_offset(lab: Lab) -> Any:
    return await committed(lab, require_stable=True)


async def _hanging_before(lab: Lab) -> None:
    await _topic(lab)
    options = {**_STRANGER, "base_sequence": 0, "attributes": TRANSACTIONAL_FLAG}
    records = batch(1, lab.clock.wall_ms(), **options)
    topic = {"name": TOPIC, "partition_data": [{"index": 0, "records": records}]}
    await lab.admin.ask("produce", 11, transactional_id="stranger", acks=-1, topic_data=[topic])


async def _write_marker(lab: Lab) -> None:
    topics = [{"name": TOPIC, "partition_indexes": [0]}]
    marker = {**_STRANGER, "transaction_result": False, "coordinator_epoch": 0, "topics": topics}
    answer = await lab.admin.ask("write_txn_markers", markers=[marker])
    _check(answer.markers[0].topics[0].partitions[0].error_code)


async def _open_transactions(lab: Lab) -> list[int]:
    asked = {"name": TOPIC, "partition_indexes": [0]}
    answer = await lab.admin.ask("describe_producers", topics=[asked])
    (partition,) = answer.topics[0].partitions
    return [one.current_txn_start_offset for one in partition.active_producers]


def _of_log(api: str, before: Step, ask: Step, look: Look, after: Any, store: str | None = None) -> Change:
    """A change that a log with the policy `log.flush` keeps."""
    return Change(api, api, before, ask, look, after, is_metadata=False, store=store)


_INITIALISE, _WRITE = initialise(5, 0), write(2, (2, 4, 2, 1))

CHANGES = [
    Change("create_topics", "create_topics", _nothing, _create, _topics, {TOPIC: 2}),
    Change("metadata", "metadata", _nothing, _create_by_metadata, _topics, {TOPIC: 1}),
    Change("delete_topics", "delete_topics", _records, _delete_topic, _topics, {}),
    Change("create_partitions", "create_partitions", _records, _add_partition, _topics, {TOPIC: 3}),
    Change("delete_records", "delete_records", _records, _delete_records, _log_start, 4),
    *_settings("alter_configs"),
    *_settings("incremental_alter_configs"),
    Change("alter_client_quotas", "alter_client_quotas", _nothing, _limit, _limits, [2e4]),
    Change(
        "alter_user_scram_credentials",
        "alter_user_scram_credentials",
        _nothing,
        _add_user,
        _users,
        ["alice"],
    ),
    Change("update_features", "update_features", _nothing, _lower_feature, _feature, 1),
    _of_log("offset_commit", _records, _commit, committed, 2),
    _of_log("offset_delete", _committed_before, _delete_offset, committed, -1),
    _of_log("delete_groups", _committed_before, _delete_group, _groups, []),
    _of_log("delete_groups", _share_group_before, _delete_share_group, _groups, [])._replace(
        name="delete_groups of a share group"
    ),
    _of_log("alter_share_group_offsets", _share_group_before, _set_share_offset, _share_start, 4),
    _of_log("delete_share_group_offsets", _share_group_before, _delete_share_offsets, _share_start, None),
    _of_log("alter_share_records", _held_before, _archive_record, _second_record, None)._replace(
        name="alter_share_records archives"
    ),
    _of_log(
        "alter_share_records", _held_before, _release_record, _second_record, (DescribedState.AVAILABLE, 2)
    )._replace(name="alter_share_records releases"),
    _of_log("initialize_share_group_state", _topic, _state(_INITIALISE), _state_start, 0, "topic"),
    _of_log("write_share_group_state", _state_before(_INITIALISE), _state(_WRITE), _state_start, 2, "topic"),
    _of_log(
        "delete_share_group_state",
        _state_before(_INITIALISE),
        _state(delete_state()),
        _state_start,
        -1,
        "topic",
    ),
    _of_log("init_producer_id", _nothing, _initialise, _transaction, "Empty"),
    _of_log(
        "add_partitions_to_txn",
        _initialised_before,
        _in_transaction(_add_partitions),
        _transaction,
        "Ongoing",
    ),
    _of_log(
        "add_offsets_to_txn", _initialised_before, _in_transaction(_add_offsets), _transaction, "Ongoing"
    ),
    _of_log("end_txn", _begun_before, _in_transaction(_end), _transaction, "CompleteCommit"),
    _of_log(
        "txn_offset_commit",
        _begun_before,
        _in_transaction(_commit_offset),
        _pending_offset,
        ErrorCode.unstable_offset_commit,
    ),
    _of_log("write_txn_markers", _hanging_before, _write_marker, _open_transactions, [-1]),
]
