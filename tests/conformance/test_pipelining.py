"""Pipelined requests of one connection: none overtakes another."""

from __future__ import annotations

from barnabas.broker.config.loading import load_config
from barnabas.broker.handlers.lazy_handlers import LazyHandlers
from barnabas.broker.network.server import Server
from barnabas.protocol.errors import ErrorCode
from tests.conformance.harness import Lab, open_lab
from tests.conformance.socket_requests import SocketRequests
from tests.conformance.test_transaction_requests import TOPIC, initialised


async def test_the_end_of_a_transaction_does_not_overtake_its_partitions() -> None:
    async with open_lab() as lab:
        server = await serve(lab)
        requests = await SocketRequests.connect(f"127.0.0.1:{server.listeners[0].port}")
        try:
            await lab.create_topic()
            producer = await initialised(lab)
            fields = {f"v3_and_below_{name}": value for name, value in producer.items()}
            topics = [{"name": TOPIC, "partitions": [0]}]
            adding = requests.send("add_partitions_to_txn", 3, **fields, v3_and_below_topics=topics)
            ending = requests.send("end_txn", 3, **producer, committed=False)
            added = await requests.answered(adding)
            result = added.results_by_topic_v3_and_below[0].results_by_partition[0]
            ended = await requests.answered(ending)
            assert (result.partition_error_code, ended.error_code) == (ErrorCode.none, ErrorCode.none)
        finally:
            requests.disconnect()
            await server.close()


async def serve(lab: Lab) -> Server:
    config = load_config(None, {}, ("listeners=PLAINTEXT://127.0.0.1:0",))
    server = Server(lab.broker, config, LazyHandlers(lab.broker))
    await server.start()
    return server
