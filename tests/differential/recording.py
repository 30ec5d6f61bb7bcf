"""Apache Kafka's recorded answers to some histories, for comparisons without a Kafka.

One file per area, gzipped JSON: by history number, the observations without their requests.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.differential.stage import Observation

_SEEDS: Final = range(1, 11)
_FOUND: Final[Mapping[str, Sequence[int]]] = {"share_offsets": (120735366, 710996035, 710996036)}
"""Numbers of histories that found a difference of their own, by area."""

_DIRECTORY: Final = Path(__file__).parent / "recorded"


def recorded_seeds(area: str) -> Sequence[int]:
    """The numbers of the histories that are recorded of an area."""
    return (*_SEEDS, *_FOUND.get(area, ()))


def record(area: str, by_seed: Mapping[int, Sequence[Observation]]) -> None:
    """Replace the recorded histories of the area by these."""
    _DIRECTORY.mkdir(exist_ok=True)
    kept = {
        str(seed): [[one.api, one.version, one.answer] for one in observed]
        for seed, observed in by_seed.items()
    }
    data = json.dumps(kept, separators=(",", ":")).encode()
    _file(area).write_bytes(gzip.compress(data, mtime=0))


def recorded(area: str) -> dict[int, list[Observation]]:
    """The recorded histories of an area."""
    kept = json.loads(gzip.decompress(_file(area).read_bytes()))
    return {
        int(seed): [Observation(api, version, "", answer) for api, version, answer in observed]
        for seed, observed in kept.items()
    }


def _file(area: str) -> Path:
    return _DIRECTORY / f"{area}.json.gz"
