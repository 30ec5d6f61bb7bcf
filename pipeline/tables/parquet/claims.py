"""Who compacts a table, and what it will have done: written down before anything is changed.

A compaction that was cut short leaves its claim. The next one takes it over and finishes or undoes what was
begun. The first may still be alive: it finds that the claim isn't its own any more, and stops.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Final

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.tables.hadoop_files import HadoopFiles

DIRECTORY: Final = "_compaction"


@dataclass(frozen=True, slots=True)
class Claim:
    """A compaction. `replaced` are the URIs of files whose records `place` will hold."""

    owner: str
    place: str
    staging: str
    replaced: tuple[str, ...]


class Claims:
    """The claims on one table: the one with the highest number counts."""

    def __init__(self, files: HadoopFiles) -> None:
        self._files = files

    def current(self) -> Claim | None:
        """Who compacts the table; None if nobody does."""
        numbers = self._numbers()
        return None if not numbers else self._read(numbers[-1])

    def claim(self, claim: Claim) -> None:
        """Claims the table. Raises `PipelineError` if somebody else has done so just now."""
        numbers = self._numbers()
        number = numbers[-1] + 1 if numbers else 0
        if not self._files.create_text(_path(number), json.dumps(asdict(claim))):
            raise PipelineError(f"{self._files.root_uri}: another compaction has just begun.")
        for earlier in numbers:
            self._files.delete(_path(earlier))

    def take_over(self, claim: Claim, owner: str) -> Claim:
        """The same under a new owner; whoever had it finds out by `require`."""
        mine = replace(claim, owner=owner)
        self.claim(mine)
        return mine

    def require(self, claim: Claim) -> None:
        """Raises `PipelineError` if somebody else has taken the claim over."""
        current = self.current()
        if current is None or current.owner != claim.owner:
            raise PipelineError(f"{self._files.root_uri}: another compaction has taken over.")

    def release(self) -> None:
        """Nobody compacts the table any more."""
        for number in self._numbers():
            self._files.delete(_path(number))

    def _numbers(self) -> list[int]:
        names = [entry.name for entry in self._files.entries(DIRECTORY)]
        return sorted(int(name) for name in names if name.isdecimal())

    def _read(self, number: int) -> Claim:
        values = json.loads(self._files.read_text(_path(number)))
        return Claim(values["owner"], values["place"], values["staging"], tuple(values["replaced"]))


def _path(number: int) -> str:
    return f"{DIRECTORY}/{number}"
