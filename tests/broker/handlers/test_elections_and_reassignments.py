"""ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments with one node."""

import pytest
from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest

from barnabas.broker.handlers.alter_partition_reassignments import handle_alter_partition_reassignments
from barnabas.broker.handlers.elect_leaders import handle_elect_leaders
from barnabas.broker.handlers.list_partition_reassignments import handle_list_partition_reassignments
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import BrokerId, TopicName, i8, i32, milliseconds
from tests.broker.handlers.admin_broker import AdminBroker, ask


def partitions(topic: str, *indexes: int) -> TopicPartitions:
    return TopicPartitions(topic=TopicName(topic), partitions=tuple(map(i32, indexes)))


def election(asked: tuple[TopicPartitions, ...] | None, election_type: int = 0) -> ElectLeadersRequest:
    return ElectLeadersRequest(
        election_type=i8(election_type), topic_partitions=asked, timeout=milliseconds(1000)
    )


@pytest.mark.parametrize("version", range(3))
async def test_no_election_is_needed(broker: AdminBroker, version: int) -> None:
    await broker.create(NewTopic("t", 1))
    asked = election((partitions("t", 0, 7), partitions("nope", 0)))
    response = await ask(broker, handle_elect_leaders, asked, version=version)
    assert response.error_code is ErrorCode.none
    assert [
        (topic.topic, [(one.partition_id, one.error_code) for one in topic.partition_result])
        for topic in response.replica_election_results
    ] == [
        ("t", [(0, ErrorCode.election_not_needed), (7, ErrorCode.unknown_topic_or_partition)]),
        ("nope", [(0, ErrorCode.unknown_topic_or_partition)]),
    ]


async def test_a_request_for_all_partitions_names_no_partition(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 2))
    response = await ask(broker, handle_elect_leaders, election(None))
    assert [(one.topic, one.partition_result) for one in response.replica_election_results] == [("t", ())]


async def test_an_election_of_another_type_is_refused(broker: AdminBroker) -> None:
    response = await ask(broker, handle_elect_leaders, election((partitions("t", 0),), election_type=5))
    assert response.error_code is ErrorCode.invalid_request
    ((result,),) = [one.partition_result for one in response.replica_election_results]
    assert (result.error_code, result.error_message) == (
        ErrorCode.invalid_request,
        "Unknown election type 5",
    )


@pytest.mark.parametrize("version", [0, 1])
async def test_each_reassignment_has_its_own_result(broker: AdminBroker, version: int) -> None:
    await broker.create(NewTopic("t", 3))
    wanted = [(0, (BrokerId(1),)), (1, (BrokerId(2),)), (2, None)]
    request = AlterPartitionReassignmentsRequest(
        timeout=milliseconds(1000),
        topics=(
            ReassignableTopic(
                name=TopicName("t"),
                partitions=tuple(
                    ReassignablePartition(partition_index=i32(index), replicas=replicas)
                    for index, replicas in wanted
                ),
            ),
        ),
    )
    response = await ask(broker, handle_alter_partition_reassignments, request, version=version)
    assert response.error_code is ErrorCode.none
    ((topic,),) = [response.responses]
    assert [(one.partition_index, one.error_code) for one in topic.partitions] == [
        (0, ErrorCode.none),
        (1, ErrorCode.invalid_replica_assignment),
        (2, ErrorCode.no_reassignment_in_progress),
    ]


async def test_no_reassignment_is_under_way(broker: AdminBroker) -> None:
    request = ListPartitionReassignmentsRequest(timeout=milliseconds(1000), topics=None)
    response = await ask(broker, handle_list_partition_reassignments, request)
    assert (response.error_code, response.error_message, response.topics) == (ErrorCode.none, None, ())
