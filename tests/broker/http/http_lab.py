"""A broker on a machine of the test, and a client of its HTTP application without sockets."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from httpx import ASGITransport, AsyncClient, Response

from barnabas.broker.http.application import make_application
from barnabas.broker.http.openapi import with_document
from barnabas.broker.http.operations import broker_operations
from barnabas.broker.http.protection import AccessRules
from barnabas.broker.http.routes import Operation
from barnabas.broker.http.streams import Streams
from tests.conformance.harness import Lab, open_lab

TOKEN = "a-token-of-the-tests"
ADDRESS = "http://127.0.0.1:8080"


NO_SETTINGS: Mapping[str, str] = {}


class HttpLab(NamedTuple):
    """A broker and a client of its HTTP API."""

    lab: Lab
    client: AsyncClient

    async def get(self, path: str, **headers: str) -> Response:
        return await self.client.get(path, headers=headers)

    async def json(self, path: str) -> Any:
        """The body of a successful answer."""
        response = await self.get(path)
        assert response.status_code == 200, response.text
        return response.json()

    async def change(self, method: str, path: str, body: object = None) -> Response:
        """With the token."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return await self.client.request(method, path, json=body, headers=headers)


@asynccontextmanager
async def open_http_lab(
    given: Mapping[str, str] = NO_SETTINGS,
    *,
    token: str | None = TOKEN,
    more: Sequence[Operation] = (),
) -> AsyncGenerator[HttpLab]:
    """`given` are settings of the broker; `more` are further operations."""
    async with open_lab(**given) as lab, serve_http(lab, token=token, more=more) as http:
        yield http


@asynccontextmanager
async def serve_http(
    lab: Lab, *, token: str | None = TOKEN, more: Sequence[Operation] = ()
) -> AsyncGenerator[HttpLab]:
    """Serves the broker that the lab has now: after a restart, serve again."""
    operations = (*broker_operations(lab.broker, Streams()), *more)
    application = make_application(
        with_document("0", operations), AccessRules(frozenset({"broker.test"}), token)
    )
    transport = ASGITransport(application, client=("192.0.2.1", 5000))
    async with AsyncClient(transport=transport, base_url=ADDRESS) as client:
        yield HttpLab(lab, client)
