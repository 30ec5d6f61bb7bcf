"""Completions: done at once or later, with listeners, followers and waiters."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
from structlog.testing import capture_logs

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.completion import AllDone, Completion
from barnabas.runtime.tasks import Tasks
from tests.runtime.garbage import nothing_left_to_the_collector


class RefusedError(Exception):
    """An error that work raises."""


def refuse(_: object) -> None:
    raise ZeroDivisionError


def test_a_completion_has_its_value_once_it_is_complete() -> None:
    completion = Completion[int]()
    before = completion.done
    completion.complete(3)
    assert (before, completion.done, completion.error, completion.result()) == (False, True, None, 3)


def test_a_failed_completion_raises_its_error() -> None:
    completion = Completion[int]()
    completion.fail(RefusedError("no"))
    with pytest.raises(RefusedError, match="no"):
        completion.result()


def test_a_completion_may_be_made_done() -> None:
    refused: Completion[int] = Completion.failed(RefusedError())
    assert (Completion.of(5).result(), refused.done, type(refused.error)) == (5, True, RefusedError)


def test_a_completion_ends_once() -> None:
    completion = Completion.of(1)
    with pytest.raises(AssertionError):
        completion.complete(2)
    with pytest.raises(AssertionError):
        completion.fail(RefusedError())


def test_each_listener_is_called_once_in_order_and_at_once_if_it_comes_late() -> None:
    completion, seen = Completion[int](), list[str]()
    completion.when_done(lambda done: seen.append(f"first {done.result()}"))
    completion.when_done(lambda done: seen.append(f"second {done.result()}"))
    assert seen == []
    completion.complete(1)
    completion.when_done(lambda done: seen.append(f"late {done.result()}"))
    assert seen == ["first 1", "second 1", "late 1"]


def test_a_failing_listener_does_not_keep_the_others_waiting() -> None:
    completion, seen = Completion[int](), list[int]()
    completion.when_done(refuse)
    completion.when_done(lambda done: seen.append(done.result()))
    with capture_logs() as lines:
        completion.complete(1)
    assert seen == [1]
    assert [line["exc_info"] for line in lines] == [True]


def test_an_exception_of_a_late_listener_is_logged_and_does_not_reach_its_caller() -> None:
    with capture_logs() as lines:
        Completion.of(1).when_done(refuse)
    assert [line["exc_info"] for line in lines] == [True]


def test_a_following_completion_has_the_result_of_the_function() -> None:
    completion = Completion[int]()
    doubled = completion.then(lambda value: value * 2)
    assert not doubled.done
    completion.complete(4)
    assert doubled.result() == 8
    assert completion.then(str).result() == "4"


def test_a_following_completion_carries_the_error_of_either() -> None:
    refused: Completion[int] = Completion.failed(RefusedError())
    assert isinstance(refused.then(str).error, RefusedError)
    assert isinstance(Completion.of(0).then(lambda value: 1 // value).error, ZeroDivisionError)


REFUSED: Completion[int] = Completion.failed(RefusedError())


@pytest.mark.parametrize("other", [Completion.of(1), REFUSED])
def test_a_completion_may_end_as_another_has(other: Completion[int]) -> None:
    completion = Completion[int]()
    completion.end_as(other)
    assert (completion.done, completion.error) == (True, other.error)


@pytest.mark.parametrize("is_first_done", [False, True])
@pytest.mark.parametrize("is_second_done", [False, True])
def test_work_that_follows_work_has_an_outcome_of_its_own(is_first_done: bool, is_second_done: bool) -> None:
    first, second, seen = Completion[int](), Completion[str](), list[int]()

    def begin(value: int) -> Completion[str]:
        seen.append(value)
        return second

    if is_first_done:
        first.complete(4)
    if is_second_done:
        second.complete("four")
    outcome = first.then_run(begin)
    if not is_first_done:
        assert not seen
        first.complete(4)
    assert (seen, outcome.done) == ([4], is_second_done)
    if not is_second_done:
        second.complete("four")
    assert outcome.result() == "four"


def fails_at_once(_: int) -> Completion[int]:
    raise RefusedError


def fails_later(_: int) -> Completion[int]:
    return REFUSED


@pytest.mark.parametrize("is_first_done", [False, True])
@pytest.mark.parametrize("begin", [fails_at_once, fails_later])
def test_an_error_of_work_that_follows_is_its_outcome(
    is_first_done: bool, begin: Callable[[int], Completion[int]]
) -> None:
    first = Completion.of(1) if is_first_done else Completion[int]()
    outcome = first.then_run(begin)
    if not is_first_done:
        first.complete(1)
    assert isinstance(outcome.error, RefusedError)


@pytest.mark.parametrize("is_first_done", [False, True])
def test_no_work_follows_work_that_has_failed(is_first_done: bool) -> None:
    first = REFUSED if is_first_done else Completion[int]()
    begun: list[int] = []

    def begin(value: int) -> Completion[int]:
        begun.append(value)
        return Completion.of(value)

    outcome = first.then_run(begin)
    if not is_first_done:
        first.fail(RefusedError())
    assert (type(outcome.error), begun) == (RefusedError, [])


@pytest.mark.parametrize("begin", [fails_at_once, fails_later])
def test_a_completion_may_end_with_work_that_fails(begin: Callable[[int], Completion[int]]) -> None:
    completion = Completion[int]()
    completion.end_with(partial(begin, 1))
    assert isinstance(completion.error, RefusedError)


def test_a_completion_may_end_with_work_that_begins_now() -> None:
    completion, work = Completion[int](), Completion[int]()
    completion.end_with(lambda: work)
    assert not completion.done
    work.complete(3)
    assert completion.result() == 3


async def test_awaiting_a_finished_completion_does_not_suspend() -> None:
    waiting = Completion.of(5).__await__()
    with pytest.raises(StopIteration) as stopped:
        next(waiting)
    assert stopped.value.value == 5


async def test_awaiting_returns_the_value_or_raises() -> None:
    later, refused = Completion[int](), Completion[int]()
    asyncio.get_running_loop().call_soon(later.complete, 5)
    asyncio.get_running_loop().call_soon(refused.fail, RefusedError())
    assert (await later, await later) == (5, 5)
    with pytest.raises(RefusedError):
        await refused


async def test_a_cancelled_waiter_does_not_disturb_the_work() -> None:
    completion = Completion[int]()

    async def wait() -> int:
        return await completion

    waiter = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    completion.complete(7)
    assert await completion == 7


def test_several_completions_are_done_when_the_last_one_has_ended() -> None:
    works = [Completion[int](), Completion[int](), Completion.of(3)]
    ended = AllDone(works)
    seen: list[bool] = []
    ended.when_done(lambda done: seen.append(done.done))
    works[1].fail(RefusedError())
    assert (ended.done, seen) == (False, [])
    works[0].complete(1)
    assert (ended.result(), seen) == (None, [True])


def test_no_completions_are_done_at_once() -> None:
    assert AllDone([]).done
    assert AllDone([Completion.of(1), Completion.failed(RefusedError())]).error is None


def _refuse_request(_: int) -> int:
    raise ApiError(ErrorCode.invalid_request)


def _begin_refused(_: int) -> Completion[int]:
    raise ApiError(ErrorCode.invalid_request)


async def _refuse_later() -> int:
    await asyncio.sleep(0)
    raise ApiError(ErrorCode.invalid_request)


async def test_a_refusal_is_freed_without_the_garbage_collector() -> None:
    """However it came about, and whoever asked for it."""

    async def ask() -> None:
        later = Completion[int]()
        refused = [
            Completion.of(1).then(_refuse_request),
            Completion.of(1).then_run(_begin_refused),
            later.then(_refuse_request),
            later.then_run(_begin_refused),
            later.then(_refuse_request).then(_refuse_request),
            Tasks().run(_refuse_later),
        ]
        later.complete(1)
        for completion in refused:
            with suppress(ApiError):
                await completion
            with suppress(ApiError):
                completion.result()

    with nothing_left_to_the_collector():
        await ask()
        await asyncio.sleep(0)
