"""The requests of transactions in every version, and Apache Kafka 4.3.1's answers to unusual ones."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG
from tests.conformance.harness import Lab, batch, open_lab, settle

OK = ErrorCode.none
ID, GROUP, TOPIC = "payments", "billing", "t"
FENCED, OLD_FENCED = ErrorCode.producer_fenced, ErrorCode.invalid_producer_epoch
UNKNOWN = ErrorCode.unknown_topic_or_partition


async def initialised(lab: Lab, transactional_id: str = ID) -> dict[str, Any]:
    """The fields with which a new producer names itself."""
    asked = {"transactional_id": transactional_id, "transaction_timeout": 60_000}
    answer = await lab.admin.ask("init_producer_id", 2, **asked)
    assert answer.error_code is OK
    return {
        "transactional_id": transactional_id,
        "producer_id": answer.producer_id,
        "producer_epoch": answer.producer_epoch,
    }


async def add_partitions(
    lab: Lab, producer: dict[str, Any], version: int, *names: str, verify_only: bool = False
) -> list[ErrorCode]:
    """The result for partition 0 of each topic."""
    topics = [{"name": name, "partitions": [0]} for name in names]
    if version >= 4:
        asked = {**producer, "verify_only": verify_only, "topics": topics}
        batch_answer = await lab.admin.ask("add_partitions_to_txn", version, transactions=[asked])
        assert batch_answer.error_code is OK
        (result,) = batch_answer.results_by_transaction
        results = result.topic_results
    else:
        fields = {f"v3_and_below_{name}": value for name, value in producer.items()}
        answer = await lab.admin.ask("add_partitions_to_txn", version, **fields, v3_and_below_topics=topics)
        results = answer.results_by_topic_v3_and_below
    codes = {one.name: one.results_by_partition[0].partition_error_code for one in results}
    return [codes[name] for name in names]


@pytest.mark.parametrize("version", range(6))
async def test_partitions_are_added_in_every_version_all_or_none(version: int) -> None:
    async with open_lab() as lab:
        await lab.create_topic()
        producer = await initialised(lab)
        codes = await add_partitions(lab, producer, version, TOPIC, "absent")
        assert codes == [ErrorCode.operation_not_attempted, UNKNOWN]
        assert await add_partitions(lab, producer, version, TOPIC) == [OK]
        old = {**producer, "producer_epoch": producer["producer_epoch"] - 1}
        expected = OLD_FENCED if version < 2 else FENCED
        assert await add_partitions(lab, old, version, TOPIC) == [expected]


@pytest.mark.parametrize("version", [4, 5])
async def test_partitions_may_be_verified_only(version: int) -> None:
    async with open_lab() as lab:
        await lab.create_topic("t")
        await lab.create_topic("u")
        producer = await initialised(lab)
        await add_partitions(lab, producer, version, "t")
        codes = await add_partitions(lab, producer, version, "t", "u", verify_only=True)
        assert codes == [OK, ErrorCode.transaction_abortable]


@pytest.mark.parametrize("version", range(5))
async def test_offsets_are_added_in_every_version(version: int) -> None:
    async with open_lab() as lab:
        producer = await initialised(lab)
        added = await lab.admin.ask("add_offsets_to_txn", version, **producer, group_id=GROUP)
        assert added.error_code is OK
        (described,) = lab.broker.transactions.coordinator.describe(ID).partitions
        assert described == ("__consumer_offsets", lab.broker.groups.partition_of(GROUP))
        await initialised_again(lab)
        again = await lab.admin.ask("add_offsets_to_txn", version, **producer, group_id=GROUP)
        assert again.error_code is (OLD_FENCED if version < 2 else FENCED)


async def initialised_again(lab: Lab) -> None:
    """Another producer has taken the id over."""
    asked = {"transactional_id": ID, "transaction_timeout": 60_000}
    for _ in range(2):
        await lab.admin.ask("init_producer_id", 2, **asked)
        await settle()


@pytest.mark.parametrize("version", range(6))
async def test_a_transaction_is_ended_in_every_version(version: int) -> None:
    async with open_lab() as lab:
        await lab.create_topic()
        producer = await initialised(lab)
        await add_partitions(lab, producer, 3, TOPIC)
        ended = await lab.admin.ask("end_txn", version, **producer, committed=True)
        assert ended.error_code is OK
        if version == 5:
            assert (ended.producer_id, ended.producer_epoch) == (producer["producer_id"], 1)
        await initialised_again(lab)
        fenced = await lab.admin.ask("end_txn", version, **producer, committed=True)
        assert fenced.error_code is (OLD_FENCED if version < 2 else FENCED)


@pytest.mark.parametrize("version", range(6))
async def test_offsets_are_committed_in_every_version(version: int) -> None:
    async with open_lab() as lab:
        await lab.create_topic()
        producer = await initialised(lab)
        fields = {"partition_index": 0, "committed_offset": 3, "committed_metadata": None}
        topics = [
            {"name": TOPIC, "partitions": [fields, {**fields, "partition_index": 1}]},
            {"name": "absent", "partitions": [fields]},
        ]
        asked = {**producer, "group_id": GROUP, "topics": topics}
        answer = await lab.admin.ask("txn_offset_commit", version, **asked)
        codes = [[one.error_code for one in topic.partitions] for topic in answer.topics]
        if version < 5:
            not_added = ErrorCode.transaction_abortable if version == 4 else ErrorCode.invalid_txn_state
            assert codes == [[not_added, UNKNOWN], [UNKNOWN]]
            await lab.admin.ask("add_offsets_to_txn", 0, **producer, group_id=GROUP)
            answer = await lab.admin.ask("txn_offset_commit", version, **asked)
            codes = [[one.error_code for one in topic.partitions] for topic in answer.topics]
        assert codes == [[OK, UNKNOWN], [UNKNOWN]]
        nobody = await lab.admin.ask("txn_offset_commit", version, **{**asked, "group_id": ""})
        assert nobody.topics[0].partitions[0].error_code is ErrorCode.invalid_group_id


async def test_offsets_are_committed_by_topic_id() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        producer = await initialised(lab)
        fields = {"partition_index": 0, "committed_offset": 3, "committed_metadata": None}
        topics: list[dict[str, Any]] = [
            {"topic_id": topic_id, "partitions": [fields, {**fields, "partition_index": 1}]},
            {"topic_id": uuid4(), "partitions": [fields]},
            {"topic_id": None, "partitions": [fields]},
        ]
        answer = await lab.admin.ask("txn_offset_commit", 6, **producer, group_id=GROUP, topics=topics)
        codes = [[one.error_code for one in topic.partitions] for topic in answer.topics]
        assert codes == [[OK, UNKNOWN], [ErrorCode.unknown_topic_id], [ErrorCode.unknown_topic_id]]
        assert [topic.topic_id for topic in answer.topics] == [topic["topic_id"] for topic in topics]


@pytest.mark.parametrize(
    ("version", "no_group", "old_epoch"),
    [
        (5, ErrorCode.illegal_generation, ErrorCode.illegal_generation),
        (6, ErrorCode.group_id_not_found, ErrorCode.stale_member_epoch),
    ],
)
async def test_offsets_of_members_are_refused_with_the_errors_of_their_version(
    version: int, no_group: ErrorCode, old_epoch: ErrorCode
) -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        producer = await initialised(lab)

        async def commit(group_id: str, member_id: str, epoch: int) -> ErrorCode:
            fields = {"partition_index": 0, "committed_offset": 3, "committed_metadata": None}
            topic = {"name": TOPIC, "topic_id": topic_id, "partitions": [fields]}
            asked = {"group_id": group_id, "member_id": member_id, "generation_id": epoch, "topics": [topic]}
            answer = await lab.admin.ask("txn_offset_commit", version, **producer, **asked)
            code: ErrorCode = answer.topics[0].partitions[0].error_code
            return code

        joined = await lab.admin.ask(
            "consumer_group_heartbeat",
            group_id="consumers",
            member_id="m",
            member_epoch=0,
            rebalance_timeout=30_000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        )
        assert await commit("absent", "m", 3) is no_group
        assert await commit("consumers", "m", joined.member_epoch) is OK
        assert await commit("consumers", "m", joined.member_epoch + 1) is old_epoch


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("epoch", [-1, 3])
async def test_a_share_group_has_no_committed_offsets(version: int, epoch: int) -> None:
    async with open_lab() as lab:
        await lab.create_topic()
        await lab.admin.ask(
            "share_group_heartbeat",
            group_id=GROUP,
            member_id="m",
            member_epoch=0,
            subscribed_topic_names=[TOPIC],
        )
        offset = {"partition_index": 0, "committed_offset": 1, "committed_metadata": None}
        topic = {"name": TOPIC, "partitions": [offset]}
        asked = {"group_id": GROUP, "generation_id_or_member_epoch": epoch, "topics": [topic]}
        answer = await lab.admin.ask("offset_commit", version, **asked)
        assert answer.topics[0].partitions[0].error_code is ErrorCode.group_id_not_found


@pytest.mark.parametrize("version", [1, 2])
async def test_markers_are_written_for_administrators(version: int) -> None:
    """For a transaction that hangs: no coordinator knows its producer."""
    async with open_lab(transaction__partition__verification__enable="false") as lab:
        await lab.create_topic()
        stranger = {"producer_id": 4_242, "producer_epoch": 0}
        records = batch(1, lab.clock.wall_ms(), attributes=TRANSACTIONAL_FLAG, base_sequence=0, **stranger)
        topic_data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": records}]}]
        await lab.admin.ask("produce", 11, transactional_id="stranger", acks=-1, topic_data=topic_data)
        marker = {
            **stranger,
            "transaction_result": False,
            "coordinator_epoch": 0,
            "topics": [
                {"name": TOPIC, "partition_indexes": [0, 1]},
                {"name": "absent", "partition_indexes": [0]},
            ],
        }
        answer = await lab.admin.ask("write_txn_markers", version, markers=[marker])
        (written,) = answer.markers
        codes = [[one.error_code for one in topic.partitions] for topic in written.topics]
        assert codes == [[OK, UNKNOWN], [UNKNOWN]]
        topic = lab.broker.metadata.image.topics_by_name[TOPIC]
        log = lab.broker.logs.get(topic, 0)
        assert log is not None
        assert (log.last_stable_offset, log.high_watermark) == (2, 2)


@pytest.mark.parametrize(("producer_id", "producer_epoch"), [(-1, 0), (7, -1)])
async def test_a_marker_without_a_producer_is_refused(producer_id: int, producer_epoch: int) -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        marker = {
            "producer_id": producer_id,
            "producer_epoch": producer_epoch,
            "transaction_result": False,
            "coordinator_epoch": 0,
            "transaction_version": 0,
            "topics": [{"name": TOPIC, "partition_indexes": [0]}],
        }
        answer = await lab.admin.ask("write_txn_markers", 2, markers=[marker])
        assert answer.markers[0].topics[0].partitions[0].error_code is ErrorCode.invalid_request
        await lab.produce(topic_id, 1)
        log = lab.broker.logs.get(lab.broker.metadata.image.topics_by_id[topic_id], 0)
        assert log is not None
        assert log.log_end_offset == 1


@pytest.mark.parametrize("version", range(3))
async def test_transactional_ids_are_listed_in_every_version(version: int) -> None:
    async with open_lab() as lab:
        await lab.create_topic()
        producer, other = await initialised(lab), await initialised(lab, "other")
        await add_partitions(lab, producer, 3, TOPIC)

        async def listed(**wanted: Any) -> Any:
            filters: dict[str, Any] = {"state_filters": [], "producer_id_filters": [], **wanted}
            return await lab.admin.ask("list_transactions", version, **filters)

        answer = await listed()
        states = {one.transactional_id: one.transaction_state for one in answer.transaction_states}
        assert states == {ID: "Ongoing", "other": "Empty"}
        answer = await listed(state_filters=["Ongoing", "Dead", "Sleeping"])
        assert [one.transactional_id for one in answer.transaction_states] == [ID]
        assert answer.unknown_state_filters == ("Sleeping",)
        answer = await listed(producer_id_filters=[other["producer_id"]])
        assert [one.transactional_id for one in answer.transaction_states] == ["other"]


async def test_transactional_ids_are_listed_by_duration_and_pattern() -> None:
    async with open_lab() as lab:
        await lab.create_topic()
        producer = await initialised(lab)
        await add_partitions(lab, producer, 3, TOPIC)
        await lab.advance(500)
        for wanted, count in (
            ({"duration_filter": 499}, 1),
            ({"duration_filter": 500}, 0),
            ({"transactional_id_pattern": "pay.*"}, 1),
            ({"transactional_id_pattern": "pay"}, 0),
            ({"transactional_id_pattern": ""}, 1),
        ):
            filters: dict[str, Any] = {"state_filters": [], "producer_id_filters": [], **wanted}
            answer = await lab.admin.ask("list_transactions", **filters)
            assert (answer.error_code, len(answer.transaction_states)) == (OK, count), wanted
        filters = {"state_filters": [], "producer_id_filters": [], "transactional_id_pattern": "("}
        refused = await lab.admin.ask("list_transactions", **filters)
        assert refused.error_code is ErrorCode.invalid_regular_expression


async def test_a_level_below_2_of_the_feature_fences_without_raising_twice() -> None:
    async with open_lab() as lab:
        await lab.create_topic()
        update = {"feature": "transaction.version", "max_version_level": 0, "upgrade_type": 2}
        answer = await lab.admin.ask("update_features", feature_updates=[update])
        assert answer.error_code is OK
        producer = await initialised(lab)
        await add_partitions(lab, producer, 3, TOPIC)
        await initialised_again(lab)
        again = await initialised(lab)
        assert again["producer_epoch"] == 3
        stored = await lab.broker.transactions.topic.read(
            lab.broker.transactions.coordinator.partition_of(ID)
        )
        versions = {one.value[:2] for one in stored if one.value is not None}  # type: ignore[union-attr]
        assert versions == {b"\0\0"}
