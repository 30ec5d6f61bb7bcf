"""A broker that follows a script, for answers that no real broker gives."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Coroutine, Mapping
from random import Random
from typing import Any, cast

from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.api import flexible_version
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.header import decode_request_header
from tests.client.virtual_world import client_loop, run_virtually
from tests.conformance.messages import message, message_type, written
from tests.simulation.simulated_network import SimulatedNetwork

PORT = 9092
OTHER_PORT = 9093
"""The port of a scripted broker beside the real one of a virtual world."""

Answer = Callable[[int, bytes], bytes | None]
"""Makes the response's bytes, with its header, from the version and the request's body; None sends no
answer."""


def answer(api: str, version: int, **values: Any) -> bytes:
    """A response's bytes after the correlation id."""
    key = ApiKey[api.upper()]
    flexible = version >= flexible_version(key) and key != ApiKey.API_VERSIONS
    header = b"\0" if flexible else b""
    given = {"error_code": ErrorCode.none, **values}
    return header + written(message(message_type(api, version, "response"), given))


def api_versions(ranges: Mapping[ApiKey, tuple[int, int]]) -> Answer:
    """Answers ApiVersions with these version ranges, in the version of the request."""
    keys = [{"api_key": key, "min_version": low, "max_version": high} for key, (low, high) in ranges.items()]
    return lambda version, _: answer("api_versions", version, api_keys=keys)


class ScriptedBroker(asyncio.Protocol):
    """One connection, created by `listen`."""

    def __init__(self, answers: Mapping[ApiKey, Answer]) -> None:
        self._answers = answers
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            (size,) = struct.unpack_from(">i", self._received)
            if len(self._received) < 4 + size:
                return
            frame, self._received = self._received[4 : 4 + size], self._received[4 + size :]
            self._answer(frame)

    def _answer(self, frame: bytes) -> None:
        header = decode_request_header(frame)
        body = self._answers[ApiKey(header.api_key)](header.api_version, frame[header.body_offset :])
        if body is not None:
            answered = struct.pack(">i", header.correlation_id) + body
            self._transport.write(struct.pack(">i", len(answered)) + answered)


async def listen(answers: Mapping[ApiKey, Answer], port: int = PORT) -> None:
    """Listen on a port of the loop's network from now on."""
    client_loop().network.listen(lambda: ScriptedBroker(answers), port)


async def listen_as_only_node(
    answers: Mapping[ApiKey, tuple[int, Answer]], *topics: Mapping[str, Any]
) -> None:
    """Listen on OTHER_PORT as node 1 of a cluster of one node, which has these topics.

    It supports ApiVersions, Metadata, and each API of `answers` in the one version given there.
    """
    node = {"node_id": 1, "host": "broker", "port": OTHER_PORT}
    supported = {ApiKey.API_VERSIONS: (0, 3), ApiKey.METADATA: (12, 12)}
    supported |= {key: (version, version) for key, (version, _) in answers.items()}
    own: dict[ApiKey, Answer] = {
        ApiKey.API_VERSIONS: api_versions(supported),
        ApiKey.METADATA: lambda version, _: answer("metadata", version, brokers=[node], topics=topics),
    }
    await listen(own | {key: given for key, (_, given) in answers.items()}, OTHER_PORT)


def against(answers: dict[ApiKey, Answer], test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test against a broker that gives these answers."""

    async def main() -> None:
        client_loop().network = SimulatedNetwork(Random(1))
        if answers:
            await listen(answers)
        await test()

    run_virtually(main())
