"""The search of batches finds the same records as a search that reads every record."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from barnabas.broker.http.api import batch_search
from barnabas.broker.http.api.batch_search import BatchSearch
from barnabas.broker.http.api.found_records import FIELDS, Field
from barnabas.protocol.record_batch import CONTROL_FLAG, Compression, read_header
from barnabas.protocol.records import Record, encode_records
from barnabas.runtime.stepwise import do_at_once
from barnabas.storage.reading.log_slice import BatchSlice, BatchSpan

SEEDS = 200
CODECS = (Compression.NONE, Compression.LZ4, Compression.ZSTD)


def read_of(batches: Sequence[bytes], offset: int = 0) -> BatchSlice:
    """The batches from the one on that holds `offset`, as a log reads them."""
    spans: list[BatchSpan] = []
    position = 0
    for batch in batches:
        header = read_header(batch)
        spans.append(BatchSpan(header.base_offset, header.last_offset, position, position + len(batch)))
        position += len(batch)
    wanted = [span for span in spans if span.last_offset >= offset]
    return BatchSlice(wanted, memoryview(b"".join(batches)))


def records(chance: random.Random, first_offset: int) -> list[Record]:
    """Up to 20 records with short texts, and gaps as compaction leaves them."""
    offsets = sorted(chance.sample(range(first_offset, first_offset + 30), chance.randint(1, 20)))
    return [Record(offset, 1_000, text(chance), text(chance), headers=header(chance)) for offset in offsets]


def text(chance: random.Random) -> bytes | None:
    return None if chance.random() < 0.2 else bytes(chance.choices(b"abc", k=chance.randint(0, 6)))


def header(chance: random.Random) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((chance.choice(("a", "cb", "")), text(chance)) for _ in range(chance.randint(0, 2)))


def naive_fields(record: Record, wanted: bytes) -> list[Field]:
    texts: dict[Field, list[bytes | None]] = {
        "key": [record.key],
        "header": [part for name, value in record.headers for part in (name.encode(), value)],
        "value": [record.value],
    }
    return [field for field in FIELDS if any(part is not None and wanted in part for part in texts[field])]


@pytest.mark.seeds(SEEDS)
def test_a_search_finds_the_same_as_a_reader_of_each_record(seed: int) -> None:
    chance = random.Random(seed)
    contents = [records(chance, first_offset) for first_offset in range(0, 90, 30)]
    wanted, offset, limit = text(chance) or b"b", chance.randint(0, 60), chance.randint(1, 30)
    read = read_of([encode_records(one, compression=chance.choice(CODECS)) for one in contents], offset)
    search = BatchSearch(wanted, FIELDS, limit)
    next_offset = do_at_once(search.search(read, offset, 1_000_000))
    behind = [record for one in contents for record in one if record.offset >= offset]
    matches = [(one.offset, found) for one in behind if (found := naive_fields(one, wanted))][:limit]
    assert [(one.offset, one.found_in) for one in search.found] == matches
    if len(matches) == limit:
        assert next_offset == matches[-1][0] + 1
    else:
        assert next_offset == read.batches[-1].last_offset + 1
    assert search.searched_count == sum(record.offset < next_offset for record in behind)


def test_a_text_across_two_windows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_search, "_WINDOW_BYTES", 7)
    values = [b"." * index + b"needle" for index in range(30)]
    batch = encode_records([Record(index, 0, None, value) for index, value in enumerate(values)])
    search = BatchSearch(b"needle", FIELDS, 100)
    do_at_once(search.search(read_of([batch]), 0, 1_000_000))
    assert [one.offset for one in search.found] == list(range(30))


def test_a_batch_with_another_checksum_is_skipped_and_the_next_one_searched() -> None:
    batches = [encode_records([Record(index, 0, None, b"needle")]) for index in range(3)]
    batches[1] = batches[1][:-1] + b"?"
    search = BatchSearch(b"needle", FIELDS, 100)
    assert do_at_once(search.search(read_of(batches), 0, 1_000_000)) == 3
    assert [one.offset for one in search.found] == [0, 2]
    assert (search.searched_count, search.skipped_count) == (2, 1)


def test_markers_of_transactions_are_no_records() -> None:
    marker = encode_records([Record(0, 0, b"needle", b"needle")], attributes=CONTROL_FLAG)
    search = BatchSearch(b"needle", FIELDS, 100)
    assert do_at_once(search.search(read_of([marker]), 0, 1_000_000)) == 1
    assert (search.found, search.searched_count, search.skipped_count) == ([], 0, 0)


def test_a_search_ends_behind_the_batch_that_exceeds_the_decompressed_bytes() -> None:
    batches = [encode_records([Record(index, 0, None, b"x" * 100)]) for index in range(3)]
    search = BatchSearch(b"needle", FIELDS, 100)
    assert do_at_once(search.search(read_of(batches), 0, 150)) == 2
    assert do_at_once(search.search(read_of(batches, 2), 2, 150)) == 3
    assert search.searched_count == 3


def test_matches_with_many_characters_fill_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_search, "ANSWER_CHARACTERS_MAX", 1_500)
    batch = encode_records([Record(index, 0, b"key", b"x" * 1_000) for index in range(3)])
    search = BatchSearch(b"x", FIELDS, 100)
    assert do_at_once(search.search(read_of([batch]), 0, 1_000_000)) == 2
    assert search.is_full


@pytest.mark.parametrize("wanted", [b"needle", b"hay"])
def test_a_long_search_has_many_steps(wanted: bytes) -> None:
    """The loop has its turn between two steps."""
    batches = [
        encode_records([Record(first + index, 0, None, b"hay" * 500) for index in range(1_000)])
        for first in range(0, 4_000, 1_000)
    ]
    search = BatchSearch(wanted, ("key",), 100)
    steps = search.search(read_of(batches), 0, 100_000_000)
    assert sum(1 for _ in steps) >= len(batches)
    assert search.searched_count == 4_000
