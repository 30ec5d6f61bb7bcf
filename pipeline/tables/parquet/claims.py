"""The claim of a compaction: its planned changes, written before anything is changed.

A compaction that was cut short leaves its claim. The next one takes it over, and finishes or undoes the
earlier one's work. If the earlier one is still alive, it finds a newer claim, and stops.

A claim is a numbered file. A compaction that ends adds a file that says so, and does not remove its own:
each number is used once, so nothing that an earlier compaction does late can reach the claim of a later one.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.tables.hadoop_files import HadoopFiles
from barnabas.pipeline.tables.numbered_files import NumberedFiles

DIRECTORY: Final = "_compaction"

_RELEASED: Final = "released"


@dataclass(frozen=True, slots=True)
class Claim:
    """A compaction. `replaced` are the URIs of files whose records `place` will hold."""

    owner: str
    place: str
    staging: str
    replaced: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """A claim and the number of its file."""

    number: int
    claim: Claim


class Claims:
    """The claims on one table: the one with the highest number counts."""

    def __init__(self, files: HadoopFiles) -> None:
        self._root_uri = files.root_uri
        self._numbered = NumberedFiles(files, DIRECTORY)

    def current(self) -> HeldClaim | None:
        """The compaction that is under way, or was cut short; None if there is none."""
        number, claim = self._newest()
        return None if claim is None else HeldClaim(number, claim)

    def claim(self, claim: Claim) -> HeldClaim:
        """Claims the table. Raises `PipelineError` if another compaction is under way or was cut short."""
        number, earlier = self._newest()
        if earlier is not None:
            raise self._has_just_begun()
        return self._add(number + 1, claim)

    def take_over(self, earlier: HeldClaim, owner: str) -> HeldClaim:
        """The same claim under a new owner; `require` fails for the earlier owner from then on.

        Raises `PipelineError` if another compaction has been faster.
        """
        return self._add(earlier.number + 1, replace(earlier.claim, owner=owner))

    def require(self, held: HeldClaim) -> None:
        """Raises `PipelineError` if another compaction has taken the claim over."""
        if self._numbered.numbers()[-1:] != [held.number]:
            raise PipelineError(f"{self._root_uri}: another compaction has taken over.")

    def release(self, held: HeldClaim) -> None:
        """Ends this compaction. Changes nothing if another one has taken the claim over."""
        # Without files to replace, an end is harmless for a reader that takes it for a claim.
        ended = {**asdict(replace(held.claim, replaced=())), _RELEASED: True}
        self._numbered.add(held.number + 1, json.dumps(ended))

    def _newest(self) -> tuple[int, Claim | None]:
        """The highest number, -1 if there is none, and the claim under it; None after an end."""
        newest = self._numbered.newest()
        if newest is None:
            return -1, None
        values: dict[str, Any] = json.loads(newest[1])
        if values.get(_RELEASED):
            return newest[0], None
        claim = Claim(values["owner"], values["place"], values["staging"], tuple(values["replaced"]))
        return newest[0], claim

    def _add(self, number: int, claim: Claim) -> HeldClaim:
        if not self._numbered.add(number, json.dumps(asdict(claim))):
            raise self._has_just_begun()
        return HeldClaim(number, claim)

    def _has_just_begun(self) -> PipelineError:
        return PipelineError(f"{self._root_uri}: another compaction has just begun.")
