"""The error for a batch that cannot be decoded, and its texts, which both decoders use."""

from __future__ import annotations

from barnabas.pipeline.errors import PipelineError
from barnabas.protocol.record_walk.faults import RECORD_FAULTS


class BatchError(PipelineError):
    """A batch that cannot be decoded. The decoder took all batches in front of it, and nothing of this one.

    It begins at `position` in the buffer. The next one begins at `next_position`, which is None if the
    batch's length cannot be trusted. `base_offset` is the one in its header.
    """

    def __init__(
        self, base_offset: int, position: int, reason: str, next_position: int | None = None
    ) -> None:
        super().__init__(f"The batch of offset {base_offset} at byte {position} {reason}.")
        self.base_offset = base_offset
        self.position = position
        self.reason = reason
        self.next_position = next_position

    def __reduce__(self) -> tuple[type[BatchError], tuple[int, int, str, int | None]]:
        """Spark pickles errors between processes: this one is made again from its arguments."""
        return (BatchError, (self.base_offset, self.position, self.reason, self.next_position))


def wrong_magic(magic: int) -> str:
    return f"has message format version {magic}; only version 2 is read"


def wrong_length(batch_length: int) -> str:
    return f"states a length of {batch_length} bytes"


def wrong_checksum(stated: int, computed: int) -> str:
    return f"has the checksum {computed:08x} and states {stated:08x}"


def wrong_offsets(last_offset_delta: int) -> str:
    return f"has impossible offsets: its last offset delta is {last_offset_delta}"


def wrong_count(record_count: int, body_bytes: int) -> str:
    return f"states {record_count} records in {body_bytes} bytes"


def wrong_codec(codec: int) -> str:
    return f"has the unknown codec {codec}"


def wrong_body(error: Exception) -> str:
    return f"cannot be unpacked: {error}"


def too_large(body_bytes: int, bytes_max: int) -> str:
    return f"holds {body_bytes} bytes of records; at most {bytes_max} are read"


def wrong_marker(error: Exception) -> str:
    return f"holds a malformed transaction marker: {error}"


def wrong_record(index: int, fault: int) -> str:
    return f"is malformed: its record {index} {RECORD_FAULTS[fault]}"


def wrong_end(extra_bytes: int) -> str:
    return f"has {extra_bytes} bytes behind its last record"
