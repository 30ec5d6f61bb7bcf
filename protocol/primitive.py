"""The bounded integers and durations in kio's messages, for code that fills in responses.

At runtime they are plain `int` and `timedelta`; the types name their width on the wire.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import lru_cache
from typing import Final, cast

from kio.schema.types import BrokerId, GroupId, ProducerId, TopicName, TransactionalId
from kio.static.primitive import Records, TZAware, f64, i8, i16, i32, i32Timedelta, i64, i64Timedelta, u16

__all__ = [
    "MILLISECOND",
    "BrokerId",
    "GroupId",
    "ProducerId",
    "Records",
    "TZAware",
    "TopicName",
    "TransactionalId",
    "f64",
    "i8",
    "i16",
    "i32",
    "i32Timedelta",
    "i64",
    "i64Timedelta",
    "long_milliseconds",
    "milliseconds",
    "to_milliseconds",
    "trusted_i32",
    "u16",
]

trusted_i32: Final = cast("Callable[[int], i32]", int)
"""An `i32` of a number that is known to fit, without the check of `i32` itself."""

MILLISECOND: Final = datetime.timedelta(milliseconds=1)


@lru_cache(maxsize=1024)
def milliseconds(ms: int) -> i32Timedelta:
    """A duration for a message; `TypeError` if it does not fit into 32 bits of milliseconds."""
    return i32Timedelta.parse(datetime.timedelta(milliseconds=ms))


def long_milliseconds(ms: int) -> i64Timedelta:
    """A duration in a field of 64 bits."""
    return i64Timedelta.parse(datetime.timedelta(milliseconds=ms))


def to_milliseconds(duration: datetime.timedelta) -> int:
    """A duration from a message, which is always a whole number of milliseconds."""
    return duration // MILLISECOND
