"""A large request is decoded first, handled in parts with other work in between, and answered last."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.broker.network.handler import Reply, Response
from barnabas.broker.network.large_request import LargeRequest
from barnabas.runtime.response_budget import EncodedBody
from tests.broker.network.edge_fakes import body


class Work:
    """Notes the order of the steps; other work of the loop counts the passes in which it ran."""

    def __init__(self, *parts: object) -> None:
        self.parts = parts
        self.steps: list[object] = []
        self.reply: Any = None
        self.handled = asyncio.Event()

    async def read(self) -> list[object]:
        self.steps.append("read")
        return [*self.parts]

    def handle(self, part: object) -> Reply:
        self.steps.append(part)
        self.handled.set()
        return self.reply if self.reply is not None else body(f"answer to {part}. ")

    async def write(self, parts: Sequence[object], answers: Sequence[Response]) -> EncodedBody:
        self.steps.append("write")
        return EncodedBody([b"".join(one.buffers[0] for one in answers if isinstance(one, EncodedBody))])

    def request(self) -> LargeRequest[object]:
        return LargeRequest(self.read, self.handle, self.write)

    def other(self) -> None:
        """Another client's request: handled in each pass of the loop."""
        self.steps.append("other")
        asyncio.get_running_loop().call_soon(self.other)


class LongPoll(asyncio.Future[EncodedBody]):
    hurried = 0

    def hurry(self) -> None:
        self.hurried += 1

    def withdraw(self) -> None:
        self.cancel()


async def test_other_work_runs_between_two_parts() -> None:
    work = Work(1, 2, 3)
    waiting = asyncio.ensure_future(work.request())
    asyncio.get_running_loop().call_soon(work.other)
    assert await waiting == body("answer to 1. answer to 2. answer to 3. ")
    between = [work.steps.index(2) - work.steps.index(1), work.steps.index(3) - work.steps.index(2)]
    assert all(distance > 1 for distance in between), work.steps
    assert work.steps[0] == "read"
    assert [step for step in work.steps if step != "other"][-1] == "write"


async def test_a_wait_of_the_handler_is_hurried() -> None:
    work = Work("fetch")
    work.reply = LongPoll()
    request = work.request()
    waiting = asyncio.ensure_future(request)
    await work.handled.wait()
    request.hurry()
    assert work.reply.hurried == 1
    work.reply.set_result(body("done"))
    assert await waiting == body("done")


async def test_a_wait_that_begins_later_is_hurried_too() -> None:
    work = Work("fetch")
    work.reply = LongPoll()
    request = work.request()
    request.hurry()
    waiting = asyncio.ensure_future(request)
    await work.handled.wait()
    await asyncio.sleep(0)
    assert work.reply.hurried == 1
    work.reply.set_result(body("done"))
    assert await waiting == body("done")


async def test_a_request_whose_client_is_gone_before_the_handling_is_discarded() -> None:
    work = Work(1, 2)
    request = work.request()
    waiting = asyncio.ensure_future(request)
    request.withdraw()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert work.steps == ["read"]
