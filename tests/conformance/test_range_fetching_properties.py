"""Each record reaches exactly one of the sharers, for generated batches, transactions and fetches."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.record_batch import Compression, ProducedBatch, read_header
from barnabas.protocol.record_keys.hash_range import even_ranges
from barnabas.protocol.records import Record, encode_records
from barnabas.storage.log.partition_log import PartitionLog
from tests.conformance.conftest import with_log_store_only
from tests.conformance.harness import open_lab, settle
from tests.conformance.sharer import COMMITTED, UNCOMMITTED, Sharer, sharers
from tests.conformance.test_cleaning import log_of
from tests.storage.log_building import NOW_MS
from tests.storage.transactions import Producer

pytestmark = with_log_store_only

PRODUCERS = 2

KEYS = st.none() | st.binary(max_size=3)


class Batch(NamedTuple):
    """A batch with a record for each key."""

    keys: list[bytes | None]
    codec: Compression


class Send(NamedTuple):
    """A batch in a transaction, with a record without a key."""

    producer: int


class End(NamedTuple):
    """The end of a transaction."""

    producer: int
    commit: bool


class Fetch(NamedTuple):
    """A fetch of one sharer."""

    sharer: int
    partition_max_bytes: int


producers = st.integers(0, PRODUCERS - 1)
batches = st.builds(Batch, st.lists(KEYS, min_size=1, max_size=6), st.sampled_from(list(Compression)))
ends = st.builds(End, producers, st.booleans())
fetches = st.builds(Fetch, st.integers(0, 7), st.integers(0, 400))
steps = st.lists(batches | batches | st.builds(Send, producers) | ends | fetches, max_size=40)


class History:
    """The log, and the offsets that readers must get."""

    def __init__(self, log: PartitionLog) -> None:
        self._log = log
        self._producers = [Producer(log, producer_id) for producer_id in range(PRODUCERS)]
        self._pending: list[list[int]] = [[] for _ in range(PRODUCERS)]
        self.written: list[int] = []
        self.committed: list[int] = []

    def append(self, batch: Batch) -> None:
        first = self._log.log_end_offset
        records = [Record(delta, NOW_MS, key, b"value") for delta, key in enumerate(batch.keys)]
        data = encode_records(records, compression=batch.codec)
        self._log.append_produced(data, [ProducedBatch(0, read_header(data))], NOW_MS)
        offsets = range(first, first + len(batch.keys))
        self.written += offsets
        self.committed += offsets

    def send(self, producer: int) -> None:
        offset = self._log.log_end_offset
        self._producers[producer].send()
        self.written.append(offset)
        self._pending[producer].append(offset)

    def end(self, producer: int, *, commit: bool) -> None:
        self._producers[producer].end(commit=commit)
        self.committed += self._pending[producer] if commit else []
        self._pending[producer] = []


async def run(given_steps: list[Batch | Send | End | Fetch], sharer_count: int, isolation_level: int) -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, 1)
        log = log_of(lab, topic_id)
        history = History(log)
        history.written, history.committed = [0], [0]
        members = sharers(lab, topic_id, even_ranges(sharer_count), isolation_level=isolation_level)
        for step in given_steps:
            await take(step, history, members)
        for producer in range(PRODUCERS):
            history.end(producer, commit=True)
        await settle()
        for member in members:
            await member.catch_up(log.high_watermark)
        wanted = history.committed if isolation_level == COMMITTED else history.written
        assert sorted(offset for member in members for offset in member.kept) == sorted(wanted)


async def take(step: Batch | Send | End | Fetch, history: History, members: list[Sharer]) -> None:
    if isinstance(step, Batch):
        history.append(step)
    elif isinstance(step, Send):
        history.send(step.producer)
    elif isinstance(step, End):
        history.end(step.producer, commit=step.commit)
    else:
        member = members[step.sharer % len(members)]
        await member.fetch(partition_max_bytes=step.partition_max_bytes)


@settings(max_examples=60)
@given(steps, st.integers(1, 8), st.sampled_from((UNCOMMITTED, COMMITTED)))
def test_each_record_is_kept_by_exactly_one_sharer_and_all_positions_reach_the_end(
    given_steps: list[Batch | Send | End | Fetch], sharer_count: int, isolation_level: int
) -> None:
    asyncio.run(run(given_steps, sharer_count, isolation_level))
