"""What an operation of a coordinator is made of: a generator that asks for effects, one at a time, and ends
with its answer.

It yields `Write` for records to be appended and replayed, or `Settle` for tickets to be waited for, and is
resumed when that has happened. Nothing is awaited: the generator is as pure as what it decides.
`partition_runtime` drives it.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from barnabas.coordinator.runtime.interfaces import Ticket

RecordT_co = TypeVar("RecordT_co", covariant=True)
_T = TypeVar("_T")


class Write(NamedTuple, Generic[RecordT_co]):
    """Append these records as one batch, then replay them. Raises the ApiError of an append that failed."""

    records: Sequence[RecordT_co]


class Settle(NamedTuple):
    """Go on when all of these have ended; whether they went well is for the operation to see."""

    tickets: Sequence[Ticket]


Steps: TypeAlias = Generator[Write[RecordT_co] | Settle, None, _T]
Operation: TypeAlias = Callable[[], Steps[RecordT_co, _T]]
"""What begins an operation, once its turn has come."""
