"""The batches that a committed reader leaves out, and the records that decoders take."""

from __future__ import annotations

import pytest

from barnabas.pipeline.decoding import _python
from barnabas.protocol.aborted_transactions import AbortedTransactions
from barnabas.protocol.record_batch import CONTROL_FLAG, TRANSACTIONAL_FLAG
from tests.pipeline.decoding.batches import ABORT, COMMIT, marker, of_offsets, sealed, transactional
from tests.pipeline.decoding.decoders import DECODER_NAMES, DECODERS, outcome

Decoder = type[_python.RecordDecoder]
both = pytest.mark.parametrize("decoder", DECODERS, ids=DECODER_NAMES)

LOG = [
    transactional(0, 7),  # aborted by 3
    transactional(1, 8),  # committed by 6
    of_offsets(2),
    marker(3, 7, ABORT),
    transactional(4, 7),  # committed by 5
    marker(5, 7, COMMIT),
    marker(6, 8, COMMIT),
    transactional(7, 8),  # aborted by 10
    transactional(8, 7),  # aborted by 11
    transactional(9, 8),  # aborted by 10
    marker(10, 8, ABORT),
    marker(11, 7, ABORT),
    transactional(12, 8),  # open
]
FROM_FETCH = [(7, 0), (8, 7), (7, 8)]
FROM_INDEX = [(7, 0, 3), (8, 7, 10), (7, 8, 11)]


def test_the_end_of_a_transaction_is_known_once_its_marker_was_seen() -> None:
    aborted = AbortedTransactions.from_fetch([(7, 10), (7, 30)])
    body = b"\x20\0\0\0\x08\0\0\0\0\x0c\0\0\0\0\0\0\0"
    assert [aborted.covers(7, offset) for offset in (9, 10, 15)] == [False, True, True]
    aborted.see_marker(7, 20, body)
    assert [aborted.covers(7, offset) for offset in (20, 21, 29, 30)] == [True, False, False, True]
    assert not aborted.covers(8, 15)


def test_a_marker_changes_nothing_about_an_end_that_is_known() -> None:
    aborted = AbortedTransactions.from_index([(7, 10, 20)])
    aborted.see_marker(7, 15, b"\x20\0\0\0\x08\0\0\0\0\x0c\0\0\0\0\0\0\0")
    assert [aborted.covers(7, offset) for offset in (16, 20, 21)] == [True, True, False]


@both
@pytest.mark.parametrize("maker", ["fetch", "index"])
def test_records_of_aborted_transactions_are_not_taken(decoder: Decoder, maker: str) -> None:
    found = outcome(decoder, b"".join(LOG), aborted=aborted_by(maker))
    assert found.columns["offset"] == [1, 2, 4, 12]
    assert found.next_offset == 13


@both
@pytest.mark.parametrize("maker", ["fetch", "index"])
def test_the_log_may_come_in_pieces(decoder: Decoder, maker: str) -> None:
    aborted, pieces = aborted_by(maker), decoder(["offset"])
    for batch in LOG:
        pieces.add(batch, aborted=aborted)
    assert pieces.take().column("offset").to_pylist() == [1, 2, 4, 12]


@both
def test_an_index_serves_a_reader_that_begins_anywhere(decoder: Decoder) -> None:
    for start in range(len(LOG)):
        found = outcome(decoder, b"".join(LOG[start:]), aborted=aborted_by("index"))
        assert found.columns["offset"] == [offset for offset in (1, 2, 4, 12) if offset >= start]


@both
def test_without_a_list_of_transactions_every_record_is_taken(decoder: Decoder) -> None:
    assert outcome(decoder, b"".join(LOG)).columns["offset"] == [0, 1, 2, 4, 7, 8, 9, 12]


@both
def test_a_batch_outside_of_transactions_is_taken_from_any_producer(decoder: Decoder) -> None:
    aborted = AbortedTransactions.from_fetch([(-1, 0)])
    assert outcome(decoder, of_offsets(1), aborted=aborted).columns["offset"] == [1]


@both
@pytest.mark.parametrize(
    "body", [b"", b"\x02\0", b"\x0c\0\0\0\x01\x01\0"], ids=["none", "cut", "without key"]
)
def test_a_malformed_marker_is_an_error_where_it_counts(decoder: Decoder, body: bytes) -> None:
    attributes = TRANSACTIONAL_FLAG | CONTROL_FLAG
    control = sealed(body, attributes=attributes, producer_id=7, record_count=1 if body else 0)
    found = outcome(decoder, control, aborted=AbortedTransactions.from_fetch([(7, 0)]))
    assert found.error is not None
    assert found.error[2].startswith("holds a malformed transaction marker")
    assert outcome(decoder, control).error is None


def aborted_by(maker: str) -> AbortedTransactions:
    if maker == "fetch":
        return AbortedTransactions.from_fetch(FROM_FETCH)
    return AbortedTransactions.from_index(FROM_INDEX)
