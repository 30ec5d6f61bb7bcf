"""Passwords are checked against stored credentials, in a thread, and once."""

from __future__ import annotations

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
    assert stage.threads.count == 2, "the first one, and the wrong one"
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
    assert first.salt != users.credential("somebody", ScramMechanism.SCRAM_SHA_256).salt
