"""The lab's requests over a socket, to a running broker, so that Apache Kafka's answers to the same requests
can be recorded.
"""

from __future__ import annotations

import asyncio
import struct
from itertools import count
from typing import Any

from barnabas.protocol.api import APIS
from tests.conformance.messages import message, message_type, read, written

_API_KEYS = {spec.name: key for key, spec in APIS.items()}


class SocketRequests:
    """One connection, one request at a time (`Requests`). Without `version` a request has the newest known
    version.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._correlation_ids = count(1)

    @classmethod
    async def connect(cls, address: str) -> SocketRequests:
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    def disconnect(self) -> None:
        self._writer.close()

    def send(self, api: str, version: int | None = None, **values: Any) -> tuple[str, int]:
        key = _API_KEYS[api]
        version = APIS[key].max_version if version is None else version
        header = struct.pack(">hhih", key, version, next(self._correlation_ids), 4) + b"test"
        if version >= APIS[key].flexible_version:
            header += b"\0"
        frame = header + written(message(message_type(api, version, "request"), values))
        self._writer.write(struct.pack(">i", len(frame)) + frame)
        return api, version

    async def answered(self, pending: tuple[str, int]) -> Any:
        api, version = pending
        (length,) = struct.unpack(">i", await self._reader.readexactly(4))
        frame = await self._reader.readexactly(length)
        flexible = version >= APIS[_API_KEYS[api]].flexible_version
        return read(message_type(api, version, "response"), frame[5 if flexible else 4 :])

    async def ask(self, api: str, version: int | None = None, **values: Any) -> Any:
        return await self.answered(self.send(api, version, **values))
