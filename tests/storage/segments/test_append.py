import asyncio

import pytest

from barnabas.storage.errors import LogOffline
from barnabas.storage.segments.append import Append


def test_callback_is_called_when_the_append_is_done() -> None:
    ticket, seen = Append(), list[Append]()
    ticket.add_done_callback(seen.append)
    ticket.add_done_callback(seen.append)
    assert seen == []
    ticket.complete()
    assert seen == [ticket, ticket]


def refuse(_: Append) -> None:
    raise ZeroDivisionError


def test_callback_that_fails_keeps_none_of_the_others_waiting(caplog: pytest.LogCaptureFixture) -> None:
    ticket, seen = Append(), list[Append]()
    ticket.add_done_callback(refuse)
    ticket.add_done_callback(seen.append)
    ticket.complete()
    assert seen == [ticket]
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_callback_is_called_at_once_if_the_append_is_done() -> None:
    ticket, seen = Append(), list[Append]()
    ticket.complete()
    ticket.add_done_callback(seen.append)
    assert seen == [ticket]


async def test_awaiting_a_finished_append_does_not_suspend() -> None:
    ticket = Append()
    ticket.complete()
    waiting = ticket.__await__()
    with pytest.raises(StopIteration) as stopped:
        next(waiting)
    assert stopped.value.value is ticket


async def test_awaiting_an_unfinished_append_answers_the_ticket() -> None:
    ticket = Append()
    asyncio.get_running_loop().call_soon(ticket.complete)
    assert await ticket is ticket


async def test_awaiting_a_failed_append_raises_its_error() -> None:
    ticket = Append()
    asyncio.get_running_loop().call_soon(ticket.fail, LogOffline("gone"))
    with pytest.raises(LogOffline, match="gone"):
        await ticket


async def test_append_completes_although_its_waiter_was_cancelled() -> None:
    ticket = Append()

    async def wait() -> None:
        await ticket

    waiter = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    ticket.complete()
    assert ticket.done
