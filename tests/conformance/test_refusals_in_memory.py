"""Nothing of a refused request stays in memory: no error is left to Python's garbage collector, which runs
rarely and does not know how many bytes an error holds.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
from collections.abc import Callable, Iterator
from contextlib import suppress
from gzip import compress
from typing import Any, cast
from uuid import UUID

import pytest

from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG, Compression
from barnabas.protocol.records import Record, encode_records
from tests.broker.produce.odd_batches import batch_of, compressed
from tests.conformance.conftest import Stage, with_log_store_only
from tests.conformance.harness import Lab, batch, produce_fields, settle
from tests.conformance.messages import encoded, message, message_type
from tests.conformance.share_member import ACCEPT
from tests.conformance.socket_requests import SocketRequests
from tests.conformance.test_pipelining import serve
from tests.runtime.garbage import nothing_left_to_the_collector

REFUSALS = 1_000
OBJECTS_MORE_MAX = 100
"""Objects that 1,000 refusals may add once, such as the counter of a kind."""
BODY_BYTES = 20_000
UNPACKED_BYTES_MAX = 100_000
"""In these tests: a bomb needs no more."""
HOUR_MS = 60 * 60 * 1000


async def ask(lab: Lab, api: str, version: int | None, values: dict[str, Any], *, times: int = 1) -> Any:
    """The last response to a request that is sent `times` times."""
    version = APIS[ApiKey[api.upper()]].max_version if version is None else version
    body = encoded(message(message_type(api, version, "request"), values))
    for _ in range(times - 1):
        pending = lab.admin.send_body(api, version, body)
        await lab.ended(pending)
        pending.body()
    return await lab.answered(lab.admin.send_body(api, version, body))


def error_codes(response: Any) -> Iterator[int]:
    """All error codes of a response."""
    if isinstance(response, tuple):
        for entry in cast("tuple[object, ...]", response):
            yield from error_codes(entry)
    elif dataclasses.is_dataclass(response):
        for field in dataclasses.fields(response):
            value = getattr(response, field.name)
            if isinstance(value, ErrorCode):
                yield value
            else:
                yield from error_codes(value)


# Produce.

TRANSACTIONAL = {"attributes": TRANSACTIONAL_FLAG, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
BATCHES: dict[str, Callable[[int], bytes | None]] = {
    "a bomb": lambda _: compressed(compress(bytes(2 * UNPACKED_BYTES_MAX)), Compression.GZIP),
    "malformed records, compressed": lambda _: compressed(
        compress(bytes(UNPACKED_BYTES_MAX - 1)), Compression.GZIP
    ),
    "a body that cannot be decompressed": lambda _: compressed(bytes(BODY_BYTES), Compression.LZ4),
    "malformed records": lambda _: batch_of(bytes(BODY_BYTES), 3),
    "many malformed records": lambda _: batch_of(bytes(BODY_BYTES), 200),
    "a batch too large": lambda now_ms: batch(1, now_ms, 10 * BODY_BYTES),
    "a wrong checksum": lambda now_ms: batch(1, now_ms, BODY_BYTES)[:-1] + b"!",
    "records without keys": lambda now_ms: batch(20, now_ms, BODY_BYTES // 20),
    "a time to come": lambda now_ms: encode_records(
        [Record(0, now_ms + 2 * HOUR_MS, b"k", bytes(BODY_BYTES))]
    ),
    "a sequence out of order": lambda now_ms: _of_producer(now_ms, base_sequence=9),
    "a producer without a transaction": lambda now_ms: batch(1, now_ms, BODY_BYTES, **TRANSACTIONAL),
    "no records": lambda _: None,
}


def _of_producer(now_ms: int, base_sequence: int) -> bytes:
    records = [Record(0, now_ms, b"k", bytes(BODY_BYTES))]
    return encode_records(records, producer_id=7, producer_epoch=0, base_sequence=base_sequence)


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.broker.produce.produced_records.DECOMPRESSED_BYTES_MAX", UNPACKED_BYTES_MAX)
    monkeypatch.setattr("barnabas.broker.produce.inline_budget.INLINE_UNPACKED_BYTES_MAX", BODY_BYTES)
    monkeypatch.setattr("barnabas.broker.produce.inline_budget.INLINE_RECORDS_MAX", 100)


async def refused_batch(lab: Lab, kind: str) -> dict[str, Any]:
    """The fields of a Produce request with a batch of this kind."""
    configs: dict[str, Any] = {
        "max__message__bytes": str(5 * BODY_BYTES),
        "message__timestamp__after__max__ms": str(HOUR_MS),
    }
    if kind == "records without keys":
        configs["cleanup__policy"] = "compact"
    topic_id = await lab.create_topic(**configs)
    first = _of_producer(lab.clock.wall_ms(), base_sequence=0)
    assert not any(error_codes(await ask(lab, "produce", None, produce_fields(topic_id, 0, first))))
    transactional_id = "payments" if kind == "a producer without a transaction" else None
    fields = produce_fields(topic_id, 0, BATCHES[kind](lab.clock.wall_ms()))
    return fields | {"transactional_id": transactional_id}


@with_log_store_only
@pytest.mark.usefixtures("small_bounds")
@pytest.mark.parametrize("kind", BATCHES)
async def test_a_thousand_refused_batches_leave_nothing(lab: Lab, kind: str) -> None:
    fields = await refused_batch(lab, kind)
    assert any(error_codes(await ask(lab, "produce", None, fields)))
    with nothing_left_to_the_collector():
        await ask(lab, "produce", None, fields, times=10)
        object_count = len(gc.get_objects())
        await ask(lab, "produce", None, fields, times=REFUSALS)
        assert len(gc.get_objects()) - object_count < OBJECTS_MORE_MAX


@with_log_store_only
@pytest.mark.usefixtures("small_bounds")
@pytest.mark.parametrize("kind", BATCHES)
async def test_connections_closed_for_a_refused_batch_leave_nothing(lab: Lab, kind: str) -> None:
    fields = await refused_batch(lab, kind)
    server = await serve(lab)

    async def produce() -> None:
        requests = await SocketRequests.connect(f"127.0.0.1:{server.listeners[0].port}")
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await requests.answered(requests.send("produce", **fields | {"acks": 0}))
        requests.disconnect()

    try:
        await produce()
        with nothing_left_to_the_collector():
            for _ in range(10):
                await produce()
            await settle()
    finally:
        await server.close()


# Other requests.

NO_ID = UUID(int=7)
UNKNOWN = "unknown"
NAMED = {"resource_type": 2, "resource_name": "t"}
SETTING = {"name": "retention.ms", "value": "often"}
PRODUCER = {"transactional_id": UNKNOWN, "producer_id": 4, "producer_epoch": 0}
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("create_topics", {"topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1}]}),
    ("create_topics", {"topics": [{"name": "many", "num_partitions": 10**6, "replication_factor": 1}]}),
    ("create_partitions", {"topics": [{"name": "t", "count": 1}]}),
    ("delete_topics", {"topics": [{"name": UNKNOWN}]}),
    (
        "delete_records",
        {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "offset": 10**6}]}]},
    ),
    (
        "delete_records",
        {"topics": [{"name": UNKNOWN, "partitions": [{"partition_index": 0, "offset": 0}]}]},
    ),
    ("alter_configs", {"resources": [NAMED | {"configs": [SETTING]}]}),
    ("incremental_alter_configs", {"resources": [NAMED | {"configs": [SETTING | {"config_operation": 0}]}]}),
    ("describe_configs", {"resources": [{"resource_type": 2, "resource_name": UNKNOWN}]}),
    (
        "alter_client_quotas",
        {
            "entries": [
                {
                    "entity": [{"entity_type": "client-id", "entity_name": "c"}],
                    "ops": [{"key": UNKNOWN, "value": 1.0, "remove": False}],
                }
            ]
        },
    ),
    ("alter_user_scram_credentials", {"deletions": [{"name": UNKNOWN, "mechanism": 1}]}),
    ("update_features", {"feature_updates": [{"feature": UNKNOWN, "max_version_level": 1}]}),
    ("describe_producers", {"topics": [{"name": UNKNOWN, "partition_indexes": [0]}]}),
    ("describe_transactions", {"transactional_ids": [UNKNOWN]}),
    ("delete_groups", {"groups_names": [UNKNOWN]}),
    ("describe_groups", {"groups": [UNKNOWN]}),
    ("consumer_group_describe", {"group_ids": [UNKNOWN]}),
    ("share_group_describe", {"group_ids": [UNKNOWN]}),
    ("heartbeat", {"group_id": UNKNOWN, "generation_id": 1, "member_id": "m"}),
    ("sync_group", {"group_id": UNKNOWN, "generation_id": 1, "member_id": "m"}),
    ("join_group", {"group_id": UNKNOWN, "member_id": "m", "session_timeout": 10}),
    ("leave_group", {"group_id": UNKNOWN, "members": [{"member_id": "m"}]}),
    ("consumer_group_heartbeat", {"group_id": UNKNOWN, "member_id": "m", "member_epoch": 5}),
    ("share_group_heartbeat", {"group_id": UNKNOWN, "member_id": "m", "member_epoch": 5}),
    ("share_group_heartbeat", {"group_id": "", "member_id": "m", "member_epoch": 0}),
    ("share_fetch", {"group_id": UNKNOWN, "member_id": "m", "share_session_epoch": 5}),
    ("share_acknowledge", {"group_id": UNKNOWN, "member_id": "m", "share_session_epoch": 5}),
    (
        "alter_share_group_offsets",
        {
            "group_id": "g",
            "topics": [{"topic_name": UNKNOWN, "partitions": [{"partition_index": 0, "start_offset": 0}]}],
        },
    ),
    ("delete_share_group_offsets", {"group_id": UNKNOWN, "topics": [{"topic_name": "t"}]}),
    ("describe_share_records", {"group_id": UNKNOWN, "topic_id": NO_ID}),
    (
        "offset_commit",
        {
            "group_id": UNKNOWN,
            "generation_id_or_member_epoch": 4,
            "member_id": "m",
            "topics": [{"topic_id": NO_ID, "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
        },
    ),
    ("offset_delete", {"group_id": UNKNOWN}),
    ("init_producer_id", {"transactional_id": "", "transaction_timeout": 1_000}),
    ("add_offsets_to_txn", PRODUCER | {"group_id": "g"}),
    ("end_txn", PRODUCER | {"committed": True}),
    (
        "add_partitions_to_txn",
        {"transactions": [PRODUCER | {"verify_only": True, "topics": [{"name": "t", "partitions": [0]}]}]},
    ),
    (
        "list_offsets",
        {
            "topics": [
                {
                    "name": UNKNOWN,
                    "partitions": [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}],
                }
            ]
        },
    ),
    ("fetch", {"topics": [{"topic_id": NO_ID, "partitions": [{"partition": 0, "fetch_offset": 0}]}]}),
    ("metadata", {"topics": [{"topic_id": None, "name": "a/b"}], "allow_auto_topic_creation": True}),
    ("describe_topic_partitions", {"topics": [{"name": UNKNOWN}], "response_partition_limit": 1}),
]


@with_log_store_only
@pytest.mark.parametrize(
    ("api", "values"), REQUESTS, ids=[f"{number}-{api}" for number, (api, _) in enumerate(REQUESTS)]
)
async def test_other_refused_requests_leave_nothing(lab: Lab, api: str, values: dict[str, Any]) -> None:
    await lab.produce(await lab.create_topic(), 1)
    assert any(error_codes(await ask(lab, api, None, values)))
    with nothing_left_to_the_collector():
        await ask(lab, api, None, values, times=10)
        object_count = len(gc.get_objects())
        await ask(lab, api, None, values, times=REFUSALS)
        assert len(gc.get_objects()) - object_count < OBJECTS_MORE_MAX


async def test_refused_acknowledgements_leave_nothing(stage: Stage) -> None:
    await stage.produce(3)
    member = stage.member()
    await member.take()
    await member.accept(1, 1)

    async def acknowledge_again(times: int) -> None:
        for _ in range(times):
            answer = await member.acknowledge([(1, 1, ACCEPT)])
            assert answer.errors == [ErrorCode.invalid_record_state]
            fetched = await member.fetch([(100, 100, ACCEPT)])
            assert fetched.acknowledge_errors == [ErrorCode.invalid_request]

    with nothing_left_to_the_collector():
        await acknowledge_again(5)
        object_count = len(gc.get_objects())
        await acknowledge_again(REFUSALS // 10)
        assert len(gc.get_objects()) - object_count < OBJECTS_MORE_MAX


async def test_requests_for_a_partition_that_is_offline_leave_nothing(stage: Stage) -> None:
    await stage.produce(3)
    member = stage.member()
    await member.take()
    lab, topic_id = stage.lab, stage.partition.topic_id
    fields = produce_fields(topic_id, 0, batch(1, lab.clock.wall_ms(), BODY_BYTES))

    async def use(times: int) -> None:
        for _ in range(times):
            response = await ask(lab, "produce", None, fields)
            assert set(error_codes(response)) == {ErrorCode.kafka_storage_error}
            await member.acknowledge([(0, 0, ACCEPT)])
            await member.fetch()

    with nothing_left_to_the_collector(), lab.broken_disk("t-0"):
        await use(REFUSALS // 10)
