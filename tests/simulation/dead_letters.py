"""The clients of a run that are about dead letters: their administrator and their reader. There are none in a
run without dead letters.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from tests.simulation.letter_administrator import LetterAdministrator
from tests.simulation.letter_checks import LetterChecks
from tests.simulation.letter_reader import LetterReader
from tests.simulation.world import World


class DeadLetters:
    """All of these clients."""

    def __init__(self, world: World, checks: LetterChecks) -> None:
        self._checks = checks
        is_used = bool(world.scenario.letters.group_ids)
        self._administrator = LetterAdministrator(world) if is_used else None
        self._reader = LetterReader(world, checks) if is_used else None

    async def prepare(self) -> None:
        """Before the first record is delivered."""
        if self._administrator is not None:
            await self._administrator.prepare()

    def actors(self) -> list[Coroutine[Any, Any, None]]:
        """The clients that work until the last phase of the run."""
        return [one.run() for one in (self._administrator, self._reader) if one is not None]

    async def settle(self) -> None:
        """Nothing holds letters back any longer."""
        if self._administrator is not None:
            await self._administrator.settle()

    async def give_up(self) -> None:
        """The groups do without letters from now on. Up to now none was given up."""
        if self._administrator is not None:
            self._checks.check_none_given_up()
            await self._administrator.give_up()

    async def read_everything(self) -> None:
        """All groups have reached the ends of their partitions: the letters are complete."""
        if self._reader is not None:
            self._checks.count(await self._reader.read_everything())
            self._checks.check_rejected()
