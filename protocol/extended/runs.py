"""The runs of a ShareFetch response, a tagged field of its partitions: the records that the broker takes back
together. Pure.

The records of a run have an order (`share.order.key.in.flight.max`, `docs/ordering.md`). When the broker
delivers one of them again, it takes back the later ones. It tells the runs only to a member that asks for
them when it opens its session.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.protocol.errors import FrameError
from barnabas.protocol.varint import Buffer

RUNS_TAG: Final = 10_000

_FIELDS: Final = struct.Struct(">bh")


class RunKind(IntEnum):
    """Which records of a partition are a run; the numbers are the wire's."""

    KEYS = 1
    """Those whose keys have the same hash. A record without a key is in no run."""
    ALL = 2
    """All of this response, and of others with this kind: their batch is delivered alone."""


class Runs(NamedTuple):
    """The runs of a partition's records."""

    kind: RunKind
    delivery_count_limit: int
    """A record with so many deliveries is given up instead of delivered again: then none is taken back."""


def pack_runs(runs: Runs) -> bytes:
    return _FIELDS.pack(*runs)


def unpack_runs(field: Buffer) -> Runs | None:
    """None for a kind that is unknown here. Raises `FrameError`."""
    if len(field) != _FIELDS.size:
        raise FrameError(f"A description of runs has {len(field)} bytes instead of {_FIELDS.size}.")
    kind, delivery_count_limit = _FIELDS.unpack(field)
    return Runs(_KINDS[kind], delivery_count_limit) if kind in _KINDS else None


_KINDS: Final = {kind.value: kind for kind in RunKind}
