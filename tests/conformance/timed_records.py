"""Records with timestamps and headers of their own, for groups in which records are delayed or expire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.protocol.record_batch import Compression
from barnabas.protocol.records import Record, encode_records
from tests.conformance.conftest import Stage
from tests.conformance.harness import produce_fields, settle

HEADER = "deliver.after.ms"


class Timed(NamedTuple):
    """A record to produce."""

    age_ms: int = 0
    """How long ago its timestamp is."""
    delay: str | None = None
    """The value of its header; None for no header."""
    key: bytes | None = None


async def produce_timed(
    stage: Stage, records: Sequence[Timed], codec: Compression = Compression.NONE
) -> None:
    """Produces the records as one batch."""
    now_ms = stage.lab.clock.wall_ms()
    encoded = [
        Record(index, now_ms - one.age_ms, one.key, b"v", headers_of(one))
        for index, one in enumerate(records)
    ]
    data = encode_records(encoded, compression=codec)
    response = await stage.lab.admin.ask("produce", **produce_fields(stage.partition.topic_id, 0, data))
    assert response.responses[0].partition_responses[0].error_code == 0, response
    await settle()


def headers_of(record: Timed) -> tuple[tuple[str, bytes | None], ...]:
    return () if record.delay is None else ((HEADER, record.delay.encode()),)
