"""The batches of producers: records with keys, with priorities, with ages and with delays."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from barnabas.protocol.record_batch import encode_record, seal_batch
from barnabas.protocol.records import Header, encode_headers
from tests.simulation.prioritised_records import PrioritisedRecords
from tests.simulation.timing import AGE_MS_MAX, DELAYS, HEADER, WITH_HEADER, TimingSettings


class ProducerBatches:
    """Makes batches. Without settings all records have the present time, and no header."""

    def __init__(self, random: Random, timing: TimingSettings, priorities: PrioritisedRecords) -> None:
        self._random = random
        self._timing = timing
        self._priorities = priorities

    def batch(self, records: Sequence[tuple[bytes | None, bytes]], wall_ms: int, **options: int) -> bytes:
        """An uncompressed batch of these keys and values. `options` are those of an idempotent or of a
        transactional producer.
        """
        ages_ms = [self._draw_age_ms() for _ in records]
        encoded = [
            encode_record(index, ages_ms[0] - age_ms, key, value, encode_headers(self._headers(value)))
            for index, (age_ms, (key, value)) in enumerate(zip(ages_ms, records, strict=True))
        ]
        return seal_batch(
            b"".join(encoded),
            base_offset=0,
            leader_epoch=-1,
            attributes=options.get("attributes", 0),
            last_offset_delta=len(encoded) - 1,
            base_timestamp_ms=wall_ms - ages_ms[0],
            max_timestamp_ms=wall_ms - min(ages_ms),
            producer_id=options.get("producer_id", -1),
            producer_epoch=options.get("producer_epoch", -1),
            base_sequence=options.get("base_sequence", -1),
            record_count=len(encoded),
        )

    def _draw_age_ms(self) -> int:
        if not self._timing.group_ids or self._random.random() < 0.7:
            return 0
        return self._random.randrange(AGE_MS_MAX)

    def _headers(self, value: bytes) -> list[Header]:
        headers = self._priorities.headers_of(value)
        if self._timing.with_header and self._random.random() < WITH_HEADER:
            headers.append((HEADER, self._random.choice(DELAYS)))
        return headers
