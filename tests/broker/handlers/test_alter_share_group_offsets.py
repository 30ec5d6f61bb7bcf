"""AlterShareGroupOffsets' handler: faults of the disk. The rules are in tests/conformance."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from tests.conformance.conftest import make_stage
from tests.conformance.harness import open_lab
from tests.conformance.share_member import GROUP


async def test_a_partition_that_cannot_be_written_is_its_own_error() -> None:
    async with open_lab() as lab:
        stage = await make_stage(lab)
        await stage.produce(2)
        await stage.member().heartbeat(-1)
        topics = [{"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 1}]}]
        with lab.broken_disk("t-0"):
            response = await lab.admin.ask("alter_share_group_offsets", group_id=GROUP, topics=topics)
        assert response.error_code is ErrorCode.none
        (partition,) = response.responses[0].partitions
        assert partition.error_code is ErrorCode.kafka_storage_error
        assert partition.error_message


async def test_one_request_alters_several_partitions_of_a_topic() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic("t", 2)
        partitions = [{"partition_index": index, "start_offset": 5 + index} for index in (0, 1)]
        response = await lab.admin.ask(
            "alter_share_group_offsets",
            group_id="new",
            topics=[{"topic_name": "t", "partitions": partitions}],
        )
        answered = response.responses[0]
        assert answered.topic_id == topic_id
        assert [(one.partition_index, one.error_code) for one in answered.partitions] == [(0, 0), (1, 0)]
