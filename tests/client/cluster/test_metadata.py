"""The client's view after Metadata responses, and after refusals that name another leader."""

from __future__ import annotations

from uuid import UUID

import pytest
from kio.schema.metadata.v13.response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

from barnabas.client.cluster.metadata import TOPIC_NAMES_MAX, ClusterView, Leader, metadata_request
from barnabas.client.network.address import Address
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.message_parts import NodeEndpoint
from barnabas.protocol.primitive import BrokerId, TopicName, i32, milliseconds

ORDERS, RETURNS = UUID(int=1), UUID(int=2)
PARTITION = TopicIdPartition(ORDERS, 0)


def topic(
    topic_id: UUID,
    name: str | None = "orders",
    *,
    leader_id: int = 1,
    leader_epoch: int = 5,
    error: ErrorCode = ErrorCode.none,
) -> MetadataResponseTopic:
    partition = MetadataResponsePartition(
        error_code=ErrorCode.none,
        partition_index=i32(0),
        leader_id=BrokerId(leader_id),
        leader_epoch=i32(leader_epoch),
    )
    return MetadataResponseTopic(
        error_code=error,
        name=None if name is None else TopicName(name),
        topic_id=topic_id,
        partitions=() if error is not ErrorCode.none else (partition,),
    )


def response(*topics: MetadataResponseTopic, node_ids: tuple[int, ...] = (1, 2)) -> MetadataResponse:
    brokers = tuple(
        MetadataResponseBroker(node_id=BrokerId(one), host=f"host-{one}", port=i32(9092)) for one in node_ids
    )
    return MetadataResponse(
        throttle_time=milliseconds(0), brokers=brokers, topics=topics, error_code=ErrorCode.none
    )


@pytest.fixture
def view() -> ClusterView:
    view = ClusterView()
    view.apply(response(topic(ORDERS)), [ORDERS])
    return view


def test_brokers_topics_and_leaders_are_stored(view: ClusterView) -> None:
    assert view.brokers == {1: Address("host-1", 9092), 2: Address("host-2", 9092)}
    assert view.topic_name(ORDERS) == "orders"
    assert view.leader(PARTITION) == 1


@pytest.mark.parametrize("leader_id", [-1, 3])
def test_a_leader_without_an_address_is_unknown(view: ClusterView, leader_id: int) -> None:
    view.apply(response(topic(ORDERS, leader_id=leader_id)), [ORDERS])
    assert view.leader(PARTITION) is None


def test_a_deleted_topic_has_no_leaders(view: ClusterView) -> None:
    view.apply(response(topic(ORDERS, None, error=ErrorCode.unknown_topic_id)), [ORDERS])
    assert view.leader(PARTITION) is None


def test_a_topic_with_a_temporary_error_keeps_its_leaders(view: ClusterView) -> None:
    view.apply(response(topic(ORDERS, None, error=ErrorCode.leader_not_available)), [ORDERS])
    assert view.leader(PARTITION) == 1


def test_names_are_kept_after_a_topic_is_not_asked_for_any_more(view: ClusterView) -> None:
    view.apply(response(topic(RETURNS, "returns")), [RETURNS])
    assert view.leader(PARTITION) is None
    assert view.topic_name(ORDERS) == "orders"


def test_the_oldest_names_are_dropped_first(view: ClusterView) -> None:
    others = [UUID(int=number) for number in range(10, 10 + TOPIC_NAMES_MAX)]
    view.apply(response(*(topic(one, str(one)) for one in others)), others)
    assert view.topic_name(ORDERS) is None
    assert view.topic_name(others[-1]) == str(others[-1])


@pytest.mark.parametrize(
    ("leader", "endpoints", "is_news", "then"),
    [
        (Leader(2, 6), (), True, 2),
        (Leader(2, 5), (), False, 1),
        (Leader(2, 4), (), False, 1),
        (Leader(3, 6), (NodeEndpoint(3, "host-3", 9092),), True, 3),
        (Leader(3, 6), (), False, 1),
    ],
)
def test_only_a_newer_leader_with_an_address_is_accepted(
    view: ClusterView, leader: Leader, endpoints: tuple[NodeEndpoint, ...], is_news: bool, then: int
) -> None:
    assert view.note_leader(PARTITION, leader, endpoints) is is_news
    assert view.leader(PARTITION) == then


def test_topics_are_asked_for_by_id_and_never_created() -> None:
    request = metadata_request([ORDERS])
    assert request.topics is not None
    assert [(one.topic_id, one.name) for one in request.topics] == [(ORDERS, None)]
    assert not request.allow_auto_topic_creation
