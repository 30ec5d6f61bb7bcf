"""The delays of released records in ShareFetch and ShareAcknowledge, a tagged field of their partitions.

Losing it would deliver the records too early, so a client sends it only to a broker that lists the feature
`RELEASE_DELAY`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import starmap
from typing import Final, NamedTuple

RELEASE_DELAYS_TAG: Final = 10_000

_DELAY: Final = struct.Struct(">qqi")


class ReleaseDelay(NamedTuple):
    """The delay of the released records in a range; both offsets are inclusive."""

    first_offset: int
    last_offset: int
    delay_ms: int


MISFIT: Final = ReleaseDelay(0, -1, 0)
"""Stands for a field whose size does not fit: no range is empty, so the broker refuses it."""


def pack_release_delays(delays: Iterable[ReleaseDelay]) -> bytes:
    """First offset, last offset and delay of each."""
    return b"".join(starmap(_DELAY.pack, delays))


def unpack_release_delays(packed: bytes) -> tuple[ReleaseDelay, ...]:
    """The delays; only `MISFIT` if the size does not fit."""
    if len(packed) % _DELAY.size:
        return (MISFIT,)
    return tuple(map(ReleaseDelay._make, _DELAY.iter_unpack(packed)))
