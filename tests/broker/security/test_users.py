"""Passwords are checked against stored credentials, in a thread, and once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from barnabas.broker.security.users import Users
from barnabas.coordinator.metadata.scram_credentials import ScramMechanism
from barnabas.protocol.metadata_records import UserScramCredentialRecord
from tests.broker.security.stored_credentials import credentials

P = ParamSpec("P")
T = TypeVar("T")


class CountedThreads:
    """Counts the calls, and runs them at once."""

    def __init__(self) -> None:
        self.count = 0

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self.count += 1
        return function(*args, **kwargs)


class Stage:
    """The user alice with a password."""

    def __init__(self, password: str) -> None:
        self.threads = CountedThreads()
        self.stored: dict[tuple[str, int], UserScramCredentialRecord] = {}
        self.users = Users(self._find, self.threads)
        self.store(password)

    def store(self, password: str) -> None:
        self.stored = {("alice", record.mechanism): record for record in credentials("alice", password)}

    def _find(self, name: str, mechanism: int) -> UserScramCredentialRecord | None:
        return self.stored.get((name, mechanism))


async def test_a_right_password_is_computed_once_until_the_credential_changes() -> None:
    stage = Stage("old")
    for password, is_right in (("old", True), ("old", True), ("wrong", False), ("old", True)):
        assert await stage.users.has_password("alice", password) is is_right
    assert stage.threads.count == 4, "both credentials for the first one, and for the wrong one"
    stage.store("new")
    assert not await stage.users.has_password("alice", "old")
    assert await stage.users.has_password("alice", "new")


async def test_a_user_without_credentials_has_no_password_and_costs_as_much() -> None:
    stage = Stage("old")
    for password in ("", "old"):
        assert not await stage.users.has_password("nobody", password)
    assert stage.threads.count == 2


async def test_a_credential_of_either_mechanism_suffices() -> None:
    stage = Stage("old")
    for mechanism in ScramMechanism:
        stage.stored.pop(("alice", mechanism))
        is_left = mechanism is ScramMechanism.SCRAM_SHA_256
        assert await stage.users.has_password("alice", "old") is is_left


def test_an_unknown_user_has_the_same_salt_at_each_look() -> None:
    users = Stage("old").users
    first, second = (users.credential("nobody", ScramMechanism.SCRAM_SHA_256) for _ in range(2))
    assert (first.salt, first.iterations) == (second.salt, 4096)
    assert first.salt != users.credential("nobody", ScramMechanism.SCRAM_SHA_512).salt
    assert first.salt != users.credential("somebody", ScramMechanism.SCRAM_SHA_256).salt


async def test_a_password_that_changes_during_its_check_is_not_right() -> None:
    stage = Stage("old")
    run = stage.threads.run

    class Changing(CountedThreads):
        async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
            result = await run(function, *args, **kwargs)
            stage.stored.clear()
            return result

    assert not await Users(stage.users.find, Changing()).has_password("alice", "old")


async def test_one_password_is_checked_at_a_time_also_if_nobody_waits_for_it() -> None:
    stage = Stage("old")
    running: list[asyncio.Future[None]] = []

    class Slow(CountedThreads):
        async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
            running.append(asyncio.get_running_loop().create_future())
            await running[-1]
            return function(*args, **kwargs)

    users = Users(stage.users.find, Slow())
    first, second = (asyncio.create_task(users.has_password("alice", "x")) for _ in range(2))
    while not running:  # noqa: ASYNC110  the tasks need some passes of the loop
        await asyncio.sleep(0)
    first.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(running) == 1, "the thread of the first one still runs"
    running[0].set_result(None)
    for count in (2, 3):
        while len(running) < count:  # noqa: ASYNC110
            await asyncio.sleep(0)
        running[-1].set_result(None)
    assert not await second
