"""TxnOffsetCommit version 4 with ranges of offsets: its fields are those of version 5."""

from dataclasses import dataclass
from typing import ClassVar

from kio.static.primitive import i16

from barnabas.protocol.extended import txn_offset_commit_v5 as v5

__all__ = ["TxnOffsetCommitRequest", "TxnOffsetCommitResponse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequest(v5.TxnOffsetCommitRequest):
    __version__: ClassVar[i16] = i16(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponse(v5.TxnOffsetCommitResponse):
    __version__: ClassVar[i16] = i16(4)
