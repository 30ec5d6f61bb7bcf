"""Connections that are lost before the answer to an acknowledgement, between real processes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client import ShareConsumer, TopicPartition
from barnabas.protocol.api import ApiKey
from barnabas.protocol.decode.acknowledgements import AckTopic
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody, decode_share_acknowledge
from barnabas.protocol.decode.share_fetch import ShareFetchBody, decode_share_fetch
from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, reserved_port, started
from tests.clients.cluster import Cluster, numbered
from tests.clients.cutting_proxy import CuttingProxy, SeenRequest, proxy_before
from tests.clients.polling import SECONDS_MAX

pytestmark = pytest.mark.barnabas


@pytest.fixture
def proxy_port() -> int:
    return reserved_port()


@pytest.fixture
def broker(barnabas_command: Path, tmp_path: Path, proxy_port: int) -> Iterator[BrokerProcess]:
    """A broker whose clients connect through a proxy."""
    settings = {**TEST_SETTINGS, "advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy_port}"}
    with started(BrokerProcess(barnabas_command, tmp_path / "data", settings=settings)) as broker:
        yield broker


async def test_a_repeated_acknowledgement_gets_its_first_answer(
    broker: BrokerProcess, proxy_port: int
) -> None:
    async with proxy_before(broker.port, proxy_port) as proxy:
        bootstrap = f"127.0.0.1:{proxy_port}"
        topic, group = await asyncio.to_thread(_topic_and_group, bootstrap)
        async with ShareConsumer(bootstrap, group=group, topics=[topic], prefetch_records=0) as consumer:
            records = await consumer.poll(timeout=SECONDS_MAX)
            assert len(records) == 10
            proxy.drops_answers = True
            for record in records[:7]:
                record.accept()
            first = await _answered_acknowledgement(proxy, 0)
            proxy.cut()
            assert await consumer.commit() == {TopicPartition(topic, 0): None}
            again = await consumer.poll(timeout=SECONDS_MAX)
            assert [(one.offset, one.delivery_count) for one in again] == [
                (one.offset, 2) for one in records[7:]
            ]
    repeated = [one for one in _acknowledgements(proxy) if one.body == first.body]
    assert len(repeated) == 2
    assert repeated[0].connection != repeated[1].connection


async def test_lost_answers_cost_no_confirmation(broker: BrokerProcess, proxy_port: int) -> None:
    """Also while the client fetches ahead, so that fetches carry acknowledgements."""
    async with proxy_before(broker.port, proxy_port) as proxy:
        bootstrap = f"127.0.0.1:{proxy_port}"
        topic, group = await asyncio.to_thread(_topic_and_group, bootstrap, 100)
        confirmed: list[int] = []
        async with ShareConsumer(bootstrap, group=group, topics=[topic], max_records=20) as consumer:
            while len(confirmed) < 100:
                records = await consumer.poll(timeout=SECONDS_MAX)
                earlier_count = len(_acknowledgements(proxy))
                proxy.drops_answers = True
                for record in records:
                    record.accept()
                await _answered_acknowledgement(proxy, earlier_count)
                proxy.cut()
                assert await consumer.commit() == {TopicPartition(topic, 0): None}
                confirmed += [record.offset for record in records]
        assert sorted(confirmed) == sorted(set(confirmed))


def _topic_and_group(bootstrap: str, record_count: int = 10) -> tuple[str, str]:
    cluster = Cluster(bootstrap)
    topic, group = cluster.topic(), cluster.group(delivery_count_limit=10)
    cluster.produce(topic, numbered(record_count))
    return topic, group


def _body(request: SeenRequest) -> ShareFetchBody | ShareAcknowledgeBody | None:
    if request.api_key == ApiKey.SHARE_FETCH:
        return decode_share_fetch(request.version, request.body, 0)
    if request.api_key == ApiKey.SHARE_ACKNOWLEDGE:
        return decode_share_acknowledge(request.version, request.body, 0)
    return None


def _acknowledges(topics: list[AckTopic]) -> bool:
    return any(partition.acknowledgement_batches for topic in topics for partition in topic.partitions)


def _acknowledgements(proxy: CuttingProxy) -> list[SeenRequest]:
    """The requests that acknowledge records."""
    bodies = ((request, _body(request)) for request in proxy.requests)
    return [request for request, body in bodies if body is not None and _acknowledges(body.topics)]


async def _answered_acknowledgement(proxy: CuttingProxy, earlier_count: int) -> SeenRequest:
    """Wait until the broker has answered the acknowledgement behind the first `earlier_count` ones."""
    while True:
        for request in _acknowledgements(proxy)[earlier_count:]:
            if (request.connection, request.correlation_id) in proxy.answered:
                return request
        await asyncio.sleep(0.01)
