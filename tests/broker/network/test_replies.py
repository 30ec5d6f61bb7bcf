"""Replies that are ready at once, and replies that come later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

import pytest

from barnabas.broker.network.replies import respond_to_each, respond_when_done, settle
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.completion import Completion
from barnabas.runtime.response_budget import EncodedBody
from tests.broker.network.edge_fakes import body


def respond(reply: Completion[int]) -> EncodedBody | Awaitable[EncodedBody]:
    return respond_when_done(
        reply, lambda value: body(f"value {value}"), lambda error: body(f"error {error.code.value}")
    )


async def test_a_ready_value_is_answered_at_once() -> None:
    reply: Completion[int] = Completion()
    reply.complete(7)
    assert respond(reply) == body("value 7")


async def test_a_refusal_is_answered_at_once() -> None:
    reply: Completion[int] = Completion()
    reply.fail(ApiError(ErrorCode.invalid_request))
    assert respond(reply) == body("error 42")


@pytest.mark.parametrize("refused", [False, True])
async def test_a_later_value_is_awaited(refused: bool) -> None:
    reply: Completion[int] = Completion()
    response = asyncio.ensure_future(settle(respond(reply)))
    await asyncio.sleep(0)
    assert not response.done()
    if refused:
        reply.fail(ApiError(ErrorCode.invalid_request))
    else:
        reply.complete(7)
    assert await response == body("error 42" if refused else "value 7")


async def test_an_error_of_the_whole_reply_is_that_of_each_entry() -> None:
    refused: Completion[list[ApiError | None]] = Completion()
    answered: Completion[list[ApiError | None]] = Completion()
    error = ApiError(ErrorCode.invalid_request)
    refused.fail(error)
    answered.complete([None, error])
    assert respond_to_each(refused, 2, _codes) == [error.code, error.code]
    assert respond_to_each(answered, 2, _codes) == [None, error.code]


def _codes(errors: Sequence[ApiError | None]) -> list[ErrorCode | None]:
    return [None if error is None else error.code for error in errors]


async def test_bugs_are_not_answered_as_errors() -> None:
    reply: Completion[int] = Completion()
    reply.fail(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        respond(reply)


async def test_only_awaitables_are_awaited() -> None:
    waiting: asyncio.Future[EncodedBody] = asyncio.get_running_loop().create_future()
    waiting.set_result(body("response"))
    assert await settle(waiting) == await settle(body("response")) == body("response")
