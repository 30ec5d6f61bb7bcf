"""Replies that are there at once, and replies that are waited for."""

import asyncio

import pytest

from barnabas.coordinator.reply import CoordinatorReply
from barnabas.protocol.errors import ApiError, ErrorCode

REFUSAL = ApiError(ErrorCode.unknown_member_id)


def test_a_completed_reply_has_its_value() -> None:
    reply: CoordinatorReply[int] = CoordinatorReply()
    before = reply.done
    reply.complete(3)
    assert (before, reply.done, reply.result()) == (False, True, 3)


def test_a_failed_reply_raises() -> None:
    reply: CoordinatorReply[int] = CoordinatorReply()
    reply.fail(REFUSAL)
    with pytest.raises(ApiError):
        reply.result()


def test_callbacks_are_called_when_it_arrives_and_at_once_if_it_has() -> None:
    reply: CoordinatorReply[int] = CoordinatorReply()
    seen: list[int] = []
    reply.add_done_callback(lambda done: seen.append(done.result()))
    assert seen == []
    reply.complete(1)
    reply.add_done_callback(lambda done: seen.append(done.result() + 1))
    assert seen == [1, 2]


async def test_awaiting_yields_the_value_or_raises() -> None:
    later: CoordinatorReply[int] = CoordinatorReply()
    asyncio.get_running_loop().call_soon(later.complete, 5)
    assert await later == 5
    assert await later == 5
    refused: CoordinatorReply[int] = CoordinatorReply()
    asyncio.get_running_loop().call_soon(refused.fail, REFUSAL)
    with pytest.raises(ApiError):
        await refused


async def test_a_cancelled_waiter_does_not_disturb_the_reply() -> None:
    reply: CoordinatorReply[int] = CoordinatorReply()

    async def wait() -> int:
        return await reply

    waiter = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    reply.complete(7)
    assert await reply == 7


def test_a_callback_that_fails_keeps_nobody_else_waiting(caplog: pytest.LogCaptureFixture) -> None:
    reply: CoordinatorReply[int] = CoordinatorReply()
    seen: list[int] = []
    reply.add_done_callback(lambda _: 1 / 0)
    reply.add_done_callback(lambda done: seen.append(done.result()))
    reply.complete(3)
    assert seen == [3]
    assert "A callback of a finished reply failed" in caplog.text
