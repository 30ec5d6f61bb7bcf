"""What an operation of a coordinator is made of: a generator that asks for effects, one at a time, and ends
with its answer.

It yields `Write` for records to be appended and replayed, `WriteMarker` for the end of a producer's
transaction among them, or `Settle` for completions to be waited for, and is resumed when that has happened.
Nothing is awaited: the generator is as pure as what it decides. `partition_runtime` drives it.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from barnabas.coordinator.replay.interfaces import TransactionMarker
from barnabas.protocol.identity import ProducerIdentity
from barnabas.runtime.completion import Completion

RecordT_co = TypeVar("RecordT_co", covariant=True)
_T = TypeVar("_T")


class Write(NamedTuple, Generic[RecordT_co]):
    """Append these records as one batch, then replay them. Raises the ApiError of an append that failed.

    With a `producer` they belong to its transaction, and count when that is committed.
    """

    records: Sequence[RecordT_co]
    producer: ProducerIdentity | None = None


class WriteMarker(NamedTuple):
    """Append the end of a producer's transaction, then replay it. Raises as `Write` does, or the log's own
    ApiError: whoever ends transactions has to know that it is refused.
    """

    marker: TransactionMarker


class Settle(NamedTuple):
    """Go on when all of these have ended; whether they went well is for the operation to see."""

    completions: Sequence[Completion[Any]]


Step: TypeAlias = Write[RecordT_co] | WriteMarker | Settle
Steps: TypeAlias = Generator[Step[RecordT_co], None, _T]
Operation: TypeAlias = Callable[[], Steps[RecordT_co, _T]]
"""What begins an operation, once its turn has come."""
