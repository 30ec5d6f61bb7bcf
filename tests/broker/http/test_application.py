"""The application: routing, decoding, and errors of RFC 9457."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from msgspec import Struct
from structlog.typing import EventDict

from barnabas.broker.http.application import BODY_BYTES_MAX
from barnabas.broker.http.routes import Call, Operation, with_body, with_query
from barnabas.protocol.errors import ApiError, ErrorCode
from tests.broker.http.http_lab import TOKEN, open_http_lab


class Filter(Struct, forbid_unknown_fields=True):
    """A query."""

    state: tuple[str, ...] = ()
    limit: int = 10


class Order(Struct, forbid_unknown_fields=True):
    """A body."""

    amount: int


class Echo(Struct):
    """An answer."""

    name: str
    state: tuple[str, ...]
    limit: int


async def echo(call: Call, query: Filter) -> Echo:
    return Echo(call.path["name"], query.state, query.limit)


async def order(call: Call, body: Order) -> None:
    if body.amount == 13:
        raise ApiError(ErrorCode.unknown_topic_or_partition, "There is no topic 13.")
    if body.amount == 14:
        raise ZeroDivisionError


ECHO = Operation(
    path="/echo/{name}/end",
    handler=with_query(Filter, echo),
    name="echo",
    summary="Echo",
    tag="test",
    answer=Echo,
)
ORDER = Operation(
    method="POST",
    path="/orders",
    handler=with_body(Order, order),
    name="order",
    summary="Order",
    tag="test",
    status=HTTPStatus.NO_CONTENT,
)
MORE: tuple[Operation, ...] = (ECHO, ORDER)


async def test_a_path_parameter_may_contain_any_character() -> None:
    async with open_http_lab(more=MORE) as http:
        found = await http.json("/echo/a%2Fb%20%C3%A4%3F/end?state=x&state=y&limit=3")
        assert found == {"name": "a/b ä?", "state": ["x", "y"], "limit": 3}


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("limit=x", "`$.limit`"),
        ("limit=1&limit=2", "limit may be given once"),
        ("colour=red", "unknown field `colour`"),
    ],
)
async def test_a_wrong_query_names_the_parameter(query: str, reason: str) -> None:
    async with open_http_lab(more=MORE) as http:
        response = await http.get(f"/echo/a/end?{query}")
        assert response.status_code == 400
        assert response.headers["content-type"] == "application/problem+json"
        assert reason in response.json()["detail"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"amount": 1}', 204),
        (b'{"amount": "1"}', 422),
        (b"{}", 422),
        (b"", 422),
        (b'{"amount": 1, "colour": 2}', 422),
        (b"{", 400),
        (b"\xff", 400),
        (b'{"amount": 13}', 404),
        (b'{"amount": 14}', 500),
        (b" " * BODY_BYTES_MAX + b"{}", 413),
    ],
)
async def test_each_body_has_its_status(body: bytes, status: int, log_lines: list[EventDict]) -> None:
    async with open_http_lab(more=MORE) as http:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        response = await http.client.post("/orders", content=body, headers=headers)
        assert response.status_code == status
        if status != 204:
            problem = response.json()
            assert (problem["status"], bool(problem["detail"])) == (status, True)
        assert [line["operation"] for line in log_lines if line["event"] == "a request failed"] == (
            ["order"] if status == 500 else []
        )


async def test_an_error_of_the_broker_has_the_name_of_kafka() -> None:
    async with open_http_lab(more=MORE) as http:
        problem = (await http.change("POST", "/orders", {"amount": 13})).json()
        assert problem == {
            "title": "Not Found",
            "status": 404,
            "detail": "There is no topic 13.",
            "kafka_error": "UNKNOWN_TOPIC_OR_PARTITION",
        }


async def test_an_unknown_path_and_a_wrong_method_are_problems() -> None:
    async with open_http_lab(more=MORE) as http:
        missing = await http.get("/nothing")
        assert (missing.status_code, missing.json()["title"]) == (404, "Not Found")
        assert (await http.get("/healthz/")).status_code == 404
        wrong = await http.get("/orders")
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
        assert wrong.headers["content-type"] == "application/problem+json"


async def test_each_response_forbids_guessing_sharing_and_keeping() -> None:
    async with open_http_lab() as http:
        for path, given in (("/healthz", {}), ("/nothing", {}), ("/healthz", {"Host": "rebound.example"})):
            headers = (await http.get(path, **given)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cross-origin-resource-policy"] == "same-origin"
            assert headers["cache-control"] == "no-store"
            assert "date" in headers
            assert "access-control-allow-origin" not in headers


async def test_head_is_served_without_a_body() -> None:
    async with open_http_lab() as http:
        response = await http.client.head("/healthz")
        assert (response.status_code, response.headers["content-length"]) == (200, "18")


async def test_the_checks_come_before_everything_else() -> None:
    async with open_http_lab() as http:
        assert (await http.get("/nothing", Host="rebound.example")).status_code == 421
        assert (await http.client.post("/nothing")).status_code == 401
