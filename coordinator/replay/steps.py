"""The steps of a coordinator's operation: a generator that asks for effects, one at a time, and returns its
answer.

It yields `Write` for records to append and replay, `WriteMarker` for the end of a producer's transaction
among them, or `Settle` for a completion to wait for. It is resumed after the effect. It awaits nothing, so it
is as pure as its decisions. `PartitionOperations` runs it.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from barnabas.coordinator.replay.interfaces import TransactionMarker
from barnabas.protocol.identity import ProducerIdentity
from barnabas.runtime.completion import Completion

RecordT_co = TypeVar("RecordT_co", covariant=True)
_T = TypeVar("_T")


class Write(NamedTuple, Generic[RecordT_co]):
    """Append these records as one batch, then replay them. Raises the ApiError of a failed append.

    With a `producer` they belong to its transaction, and count once that is committed.
    """

    records: Sequence[RecordT_co]
    producer: ProducerIdentity | None = None


class WriteMarker(NamedTuple):
    """Append the end of a producer's transaction, then replay it. Raises as `Write` does, or the ApiError
    with which the log refuses the marker.
    """

    marker: TransactionMarker


class Settle(NamedTuple):
    """Continue when this has ended, usually `AllDone`; the operation reads the outcomes."""

    ended: Completion[None]


Step: TypeAlias = Write[RecordT_co] | WriteMarker | Settle
Steps: TypeAlias = Generator[Step[RecordT_co], None, _T]
Operation: TypeAlias = Callable[[], Steps[RecordT_co, _T]]
"""Begins an operation when its turn has come."""
