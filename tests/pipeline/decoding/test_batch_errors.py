"""The errors for batches that cannot be decoded; each test is run with both decoders."""

from __future__ import annotations

import pickle

import pytest

from barnabas.pipeline.decoding import BatchError, _python
from barnabas.protocol.compression import compress
from barnabas.protocol.record_batch import HEADER_BYTES, Compression, encode_record
from tests.pipeline.decoding.batches import of_offsets, sealed
from tests.pipeline.decoding.decoders import DECODER_NAMES, DECODERS, SMALL_BOUNDS, outcome
from tests.pipeline.decoding.malformed import BAD, BODIES, FIRST, GOOD, HEADERS, changed, record

Decoder = type[_python.RecordDecoder]
both = pytest.mark.parametrize("decoder", DECODERS, ids=DECODER_NAMES)


@both
@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_no_batch_has_is_named(decoder: Decoder, name: str) -> None:
    data, reason, size = HEADERS[name]
    base_offset = int.from_bytes(data[:8], "big", signed=True)
    next_position = None if size is None else len(FIRST) + size
    found = outcome(decoder, FIRST + data)
    assert found.error == (base_offset, len(FIRST), reason.format(crc=BAD[17:21].hex()), next_position)
    assert (found.columns["offset"], found.next_offset) == ([1, 2], 3)


@both
@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_does_not_hold_its_records_is_named(decoder: Decoder, name: str) -> None:
    body, header, reason = BODIES[name]
    batch = sealed(body, **{"base_offset": 7, **header})
    found = outcome(decoder, FIRST + batch + FIRST)
    offset = int.from_bytes(batch[:8], "big", signed=True)
    assert found.error == (offset, len(FIRST), reason, len(FIRST + batch))
    assert (found.columns["offset"], found.next_offset) == ([1, 2], 3)


@both
def test_records_in_front_of_a_malformed_one_are_not_taken(decoder: Decoder) -> None:
    body = GOOD + encode_record(1, 0, None, b"v" * 50) + record(b"\x7f")
    found = outcome(decoder, FIRST + sealed(body, record_count=3, last_offset_delta=2))
    assert found.error is not None
    assert (found.columns["value"], found.columns["key"]) == ([b"1", b"2"], [None, None])


@both
def test_decoding_goes_on_behind_a_batch_that_was_refused(decoder: Decoder) -> None:
    data = FIRST + changed(HEADER_BYTES, 9) + of_offsets(9)
    going_on = decoder(["offset"])
    with pytest.raises(BatchError) as raised:
        going_on.add(data)
    assert raised.value.next_position is not None
    assert going_on.add(data, raised.value.next_position) == len(data)
    assert going_on.take().column("offset").to_pylist() == [1, 2, 9]


@both
@pytest.mark.parametrize("codec", [codec for codec in Compression if codec])
def test_compressed_bytes_that_are_malformed_are_refused(decoder: Decoder, codec: Compression) -> None:
    found = outcome(decoder, sealed(b"\x07 no such thing", attributes=codec), bounds=SMALL_BOUNDS)
    assert found.error is not None
    assert "cannot be unpacked" in found.error[2]


@both
@pytest.mark.parametrize("codec", Compression)
def test_the_unpacked_size_of_a_batch_is_bounded(decoder: Decoder, codec: Compression) -> None:
    body = encode_record(0, 0, None, bytes(10_000))
    batch = sealed(compress(codec, body), attributes=codec)
    enough, too_little = {"decompressed_bytes_max": len(body)}, {"decompressed_bytes_max": len(body) - 1}
    assert outcome(decoder, batch, bounds=enough).error is None
    assert outcome(decoder, batch, bounds=too_little).error is not None


@both
def test_times_out_of_range_do_no_harm_without_the_column(decoder: Decoder) -> None:
    batch = sealed(GOOD, timestamp_ms=2**63 - 1)
    assert outcome(decoder, batch, ["key"]).columns == {"key": [b"k"]}


@both
def test_an_unwanted_batch_is_checked_too(decoder: Decoder) -> None:
    found = outcome(decoder, changed(HEADER_BYTES, 0), ranges=[(100, 200, 1)])
    assert found.error is not None


def test_the_error_names_the_place_of_the_batch() -> None:
    error = BatchError(7, 99, "is wrong", 120)
    assert str(error) == "The batch of offset 7 at byte 99 is wrong."
    again = pickle.loads(pickle.dumps(error))
    assert (again.base_offset, again.position, again.reason, again.next_position) == (7, 99, "is wrong", 120)
