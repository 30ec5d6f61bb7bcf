"""The share coordinator's APIs on the listener for brokers: every answer equals Apache Kafka's, and other
listeners do not serve them.
"""

from __future__ import annotations

import pytest

from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode, FrameError
from tests.conformance.conftest import with_log_store_only, with_topic_store_only
from tests.conformance.harness import Lab
from tests.conformance.state_requests import (
    REQUESTS,
    find,
    initialise,
    plain,
    read,
    recorded,
    summary,
    with_topic,
    write,
)

STATE_APIS = {83, 84, 85, 86, 87}


@with_topic_store_only
async def test_every_answer_equals_kafkas(lab: Lab) -> None:
    topic_id = await lab.create_topic("t", 2)
    broker = lab.another_broker()
    for number, ((api, version, values), kafka) in enumerate(zip(REQUESTS, recorded(), strict=True)):
        answer = await broker.ask(api, version, **with_topic(values, topic_id))
        assert plain(answer, topic_id) == kafka, (number, api, values)


@with_topic_store_only
@pytest.mark.parametrize("end", ["restart", "crash"])
async def test_written_state_is_read_after_a_restart(lab: Lab, end: str) -> None:
    topic_id = await lab.create_topic("t", 2)
    broker = lab.another_broker()
    for api, version, values in (initialise(5, 0), read(3), write(2, (2, 4, 2, 1), (7, 9, 0, 3), count=3)):
        await broker.ask(api, version, **with_topic(values, topic_id))
    reads = read(), summary(), read(2)
    before = [
        await broker.ask(api, version, **with_topic(values, topic_id)) for api, version, values in reads
    ]
    await getattr(lab, end)()
    broker = lab.another_broker()
    after = [await broker.ask(api, version, **with_topic(values, topic_id)) for api, version, values in reads]
    assert after == before


@with_log_store_only
async def test_without_the_topic_there_is_no_coordinator(lab: Lab) -> None:
    topic_id = await lab.create_topic("t", 2)
    broker = lab.another_broker()
    for api, version, values in (initialise(5, 0), read(3), write(2), summary()):
        answer = await broker.ask(api, version, **with_topic(values, topic_id))
        assert answer.results[0].partitions[0].error_code is ErrorCode.coordinator_not_available
    api, version, values = find("g:AAECAwQFBgcICQoLDA0ODw:0")
    answer = await broker.ask(api, version, **values)
    assert answer.coordinators[0].error_code is ErrorCode.coordinator_not_available


@with_topic_store_only
async def test_the_coordinator_is_this_node_at_the_listener_asked(lab: Lab) -> None:
    api, version, values = find("g:AAECAwQFBgcICQoLDA0ODw:0")
    answer = await lab.another_broker().ask(api, version, **values)
    found = answer.coordinators[0]
    assert (found.node_id, found.host, found.port) == (1, "broker.example", 19092)


async def test_on_a_listener_for_clients_they_are_unknown(lab: Lab) -> None:
    topic_id = await lab.create_topic("t", 2)
    advertised = await lab.client().ask("api_versions", 2)
    assert STATE_APIS.isdisjoint({api.api_key for api in advertised.api_keys})
    for api, version, values in (initialise(5, 0), read(3), write(2), summary()):
        with pytest.raises(FrameError, match="is not served"):
            await lab.client().ask(api, version, **with_topic(values, topic_id))
    api, version, values = find("g:AAECAwQFBgcICQoLDA0ODw:0")
    answer = await lab.client().ask(api, version, **values)
    assert answer.coordinators[0].error_code is ErrorCode.invalid_request


async def test_the_listener_for_brokers_advertises_them(lab: Lab) -> None:
    broker = lab.another_broker()
    advertised = await broker.ask("api_versions", 2)
    versions = {api.api_key: (api.min_version, api.max_version) for api in advertised.api_keys}
    assert {key: versions[key] for key in STATE_APIS} == {
        83: (0, 0),
        84: (0, 0),
        85: (0, 1),
        86: (0, 0),
        87: (0, 1),
    }
    assert ApiKey.SHARE_FETCH in versions
