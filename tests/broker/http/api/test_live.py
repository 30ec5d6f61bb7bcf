"""The stream of a share-partition's state, over real sockets."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from barnabas.broker.http.opening import open_http
from tests.broker.http.api.working_group import LOCK_MS, RECORDS_PATH, working_group
from tests.conformance.share_member import ACCEPT, REJECT


async def next_event(reader: asyncio.StreamReader) -> tuple[str, Any]:
    """The next event and its data."""
    name = ""
    while True:
        line = (await reader.readline()).decode().strip()
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            return name, json.loads(line.removeprefix("data: "))


async def test_a_console_follows_the_records_until_the_server_ends() -> None:
    async with working_group(1, 1, 1, http_listener="0") as group:
        await group.member.take(3)
        broker = group.http.lab.broker
        server = await open_http(broker, broker.config.http)
        assert server is not None
        host, _, port = server.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            f"GET {RECORDS_PATH}/live?interval_ms=250 HTTP/1.1\r\nHost: {server.address}\r\n\r\n".encode()
        )
        name, state = await next_event(reader)
        assert (name, state["progress"]["lag"], state["progress"]["locked_count"]) == ("state", 3, 3)
        assert state["lock_duration_ms"] == LOCK_MS
        await group.member.acknowledge([(0, 0, ACCEPT), (1, 1, REJECT)])
        _, state = await next_event(reader)
        assert (state["progress"]["lag"], state["archived_total"]) == (1, 1)
        assert [(one["first_offset"], one["state"]) for one in state["ranges"]] == [(2, "acquired")]
        await server.close()
        assert (await reader.read()).endswith(b"0\r\n\r\n")
        writer.close()


async def test_an_unknown_partition_is_an_ordinary_error() -> None:
    async with working_group(1) as group:
        response = await group.http.get(RECORDS_PATH.replace("/partitions/0/", "/partitions/7/") + "/live")
        assert response.status_code == 404
        response = await group.http.get(f"{RECORDS_PATH}/live?interval_ms=10")
        assert response.status_code == 400
