"""The claim of a compaction: its owner and its planned changes, written before anything is changed.

A compaction that was cut short leaves its claim. The next one takes it over, and finishes or undoes the
earlier one's work. If the earlier one is still alive, it finds a claim of another owner, and stops.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Final

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.tables.hadoop_files import HadoopFiles
from barnabas.pipeline.tables.numbered_files import NumberedFiles

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
        self._root_uri = files.root_uri
        self._numbered = NumberedFiles(files, DIRECTORY)

    def current(self) -> Claim | None:
        """The compaction that is under way, or was cut short; None if there is none."""
        numbers = self._numbered.numbers()
        if not numbers:
            return None
        values = json.loads(self._numbered.read(numbers[-1]))
        return Claim(values["owner"], values["place"], values["staging"], tuple(values["replaced"]))

    def claim(self, claim: Claim) -> None:
        """Claims the table. Raises `PipelineError` if another compaction has just done so."""
        numbers = self._numbered.numbers()
        number = numbers[-1] + 1 if numbers else 0
        if not self._numbered.add(number, json.dumps(asdict(claim))):
            raise PipelineError(f"{self._root_uri}: another compaction has just begun.")

    def take_over(self, claim: Claim, owner: str) -> Claim:
        """The same claim under a new owner; `require` fails for the earlier owner from then on."""
        mine = replace(claim, owner=owner)
        self.claim(mine)
        return mine

    def require(self, claim: Claim) -> None:
        """Raises `PipelineError` if another compaction has taken the claim over."""
        current = self.current()
        if current is None or current.owner != claim.owner:
            raise PipelineError(f"{self._root_uri}: another compaction has taken over.")

    def release(self) -> None:
        """Removes the claim: no compaction is under way any more."""
        self._numbered.remove_all()
