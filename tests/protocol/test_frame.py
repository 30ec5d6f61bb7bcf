"""Frames from a stream of bytes, and the bounds of their buffers."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import FrameError
from barnabas.protocol.frame import (
    GROWTH_BYTES_MAX,
    GROWTH_BYTES_MIN,
    LARGE_FRAME_BYTES,
    RECEIVE_BUFFER_BYTES,
    FrameDecoder,
)

MAX_FRAME_BYTES = 8 * 1024 * 1024


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


def receive(decoder: FrameDecoder, stream: bytes, most: int = MAX_FRAME_BYTES) -> list[bytes | memoryview]:
    """The frames of a stream that arrives in pieces of at most `most` bytes, all of them readable."""
    frames, error = receive_until_error(decoder, stream, most)
    assert error is None
    return frames


def receive_until_error(
    decoder: FrameDecoder, stream: bytes, most: int = MAX_FRAME_BYTES
) -> tuple[list[bytes | memoryview], FrameError | None]:
    """The frames, and the error that ends them."""
    frames: list[bytes | memoryview] = []
    while stream:
        view = decoder.get_buffer(-1)
        byte_count = min(len(view), len(stream), most)
        view[:byte_count] = stream[:byte_count]
        del view
        stream = stream[byte_count:]
        for frame in decoder.buffer_updated(byte_count):
            if isinstance(frame, FrameError):
                return frames, frame
            frames.append(frame)
    return frames, None


def test_frames_are_returned_in_the_order_of_the_stream() -> None:
    assert receive(FrameDecoder(100), framed(b"one", b"", b"three")) == [b"one", b"", b"three"]


def test_a_frame_is_returned_with_its_last_byte() -> None:
    decoder = FrameDecoder(100)
    stream = framed(b"body")

    assert receive(decoder, stream[:-1]) == []
    assert receive(decoder, stream[-1:]) == [b"body"]


def test_the_length_of_a_large_frame_is_known_while_it_is_received() -> None:
    decoder = FrameDecoder(MAX_FRAME_BYTES)
    stream = framed(bytes(LARGE_FRAME_BYTES))

    assert decoder.awaited_bytes == 0
    receive(decoder, stream[:5])
    assert decoder.awaited_bytes == LARGE_FRAME_BYTES
    receive(decoder, stream[5:])
    assert decoder.awaited_bytes == 0


def test_small_frames_do_not_change_when_the_receive_buffer_is_used_again() -> None:
    decoder = FrameDecoder(100)
    (frame,) = receive(decoder, framed(b"first"))

    receive(decoder, framed(b"again"))

    assert frame == b"first"


def test_a_large_frame_is_a_view_of_memory_that_is_not_reused() -> None:
    decoder = FrameDecoder(MAX_FRAME_BYTES)
    body = bytes(range(256)) * (LARGE_FRAME_BYTES // 64)
    (frame,) = receive(decoder, framed(body), most=1000)

    receive(decoder, framed(bytes(len(body)), b"small"), most=1000)

    assert isinstance(frame, memoryview)
    assert frame.readonly
    assert frame == body


def test_a_large_frame_is_received_directly_into_its_own_buffer() -> None:
    decoder = FrameDecoder(MAX_FRAME_BYTES)
    body_bytes = 2 * RECEIVE_BUFFER_BYTES

    receive(decoder, struct.pack(">i", body_bytes))

    assert len(decoder.get_buffer(-1)) == body_bytes


def test_bytes_after_a_large_frame_are_received_separately() -> None:
    large, small = bytes(LARGE_FRAME_BYTES), b"small"

    frames = receive(FrameDecoder(MAX_FRAME_BYTES), framed(small, large, small), most=LARGE_FRAME_BYTES)

    assert frames == [small, large, small]


def test_claiming_a_length_does_not_reserve_it() -> None:
    decoder = FrameDecoder(MAX_FRAME_BYTES)

    receive(decoder, struct.pack(">i", MAX_FRAME_BYTES) + bytes(1024))

    assert len(decoder.get_buffer(-1)) == 64 * 1024 - 1024


def test_the_buffer_of_a_large_frame_grows_with_the_received_bytes_up_to_the_frame() -> None:
    decoder = FrameDecoder(MAX_FRAME_BYTES)
    receive(decoder, struct.pack(">i", 4 * GROWTH_BYTES_MAX + 1))
    arrived_bytes = room_bytes = 0
    while arrived_bytes < 4 * GROWTH_BYTES_MAX + 1:
        room_bytes = len(decoder.get_buffer(-1))
        assert decoder.held_bytes == arrived_bytes + room_bytes
        assert room_bytes <= max(GROWTH_BYTES_MIN, min(arrived_bytes, GROWTH_BYTES_MAX))
        decoder.buffer_updated(room_bytes)
        arrived_bytes += room_bytes
    assert (room_bytes, decoder.held_bytes) == (1, 0)


@pytest.mark.parametrize(
    ("sent_bytes", "next_bytes", "room_bytes"),
    [
        (GROWTH_BYTES_MIN * 3, GROWTH_BYTES_MIN * 2, GROWTH_BYTES_MIN * 2),
        (GROWTH_BYTES_MIN * 3, GROWTH_BYTES_MIN * 4, GROWTH_BYTES_MIN * 3),
        (GROWTH_BYTES_MAX * 2, GROWTH_BYTES_MAX * 2, GROWTH_BYTES_MAX),
        (LARGE_FRAME_BYTES, GROWTH_BYTES_MIN * 2, GROWTH_BYTES_MIN),
    ],
)
def test_a_peer_that_sent_a_large_frame_immediately_gets_a_large_buffer_for_the_next(
    sent_bytes: int, next_bytes: int, room_bytes: int
) -> None:
    decoder = FrameDecoder(2 * GROWTH_BYTES_MAX)
    receive(decoder, framed(bytes(sent_bytes)))
    receive(decoder, struct.pack(">i", next_bytes))
    assert len(decoder.get_buffer(-1)) == room_bytes


def test_the_counted_memory_grows_with_the_received_bytes_and_not_with_the_buffer() -> None:
    counted: list[list[int]] = []
    decoder = FrameDecoder(4 * GROWTH_BYTES_MAX)
    for _ in range(2):
        receive(decoder, struct.pack(">i", 4 * GROWTH_BYTES_MAX))
        counted.append([decoder.held_bytes])
        while decoder.held_bytes:
            decoder.get_buffer(-1)
            decoder.buffer_updated(GROWTH_BYTES_MIN)
            counted[-1].append(decoder.held_bytes)
    first, second = counted
    assert first == second
    arrived_bytes = range(0, 4 * GROWTH_BYTES_MAX, GROWTH_BYTES_MIN)
    assert all(
        arrived < held <= max(GROWTH_BYTES_MIN, arrived + min(arrived, GROWTH_BYTES_MAX))
        for arrived, held in zip(arrived_bytes, first[:-1], strict=True)
    )


def test_a_frame_of_the_maximum_length_is_returned() -> None:
    body = bytes(range(256)) * (MAX_FRAME_BYTES // 256)

    assert receive(FrameDecoder(MAX_FRAME_BYTES), framed(body)) == [body]


@pytest.mark.parametrize("length", [-1, -(2**31), 101, 2**31 - 1])
def test_an_invalid_length_is_refused_after_the_frames_before_it(length: int) -> None:
    stream = framed(b"one", b"two") + struct.pack(">i", length) + framed(b"three")

    frames, error = receive_until_error(FrameDecoder(100), stream)

    assert frames == [b"one", b"two"]
    assert error is not None
    assert str(length) in str(error)


sizes = st.one_of(
    st.integers(0, 40),
    st.integers(LARGE_FRAME_BYTES - 8, LARGE_FRAME_BYTES + 8),
    st.integers(RECEIVE_BUFFER_BYTES - 8, RECEIVE_BUFFER_BYTES + 8),
)


@given(st.lists(sizes, max_size=8), st.lists(st.integers(1, RECEIVE_BUFFER_BYTES), min_size=1, max_size=50))
def test_frames_do_not_depend_on_how_the_stream_is_cut(body_sizes: list[int], cuts: list[int]) -> None:
    bodies = [bytes([number + 1]) * size for number, size in enumerate(body_sizes)]
    stream = framed(*bodies)
    decoder = FrameDecoder(MAX_FRAME_BYTES)
    frames: list[bytes | memoryview] = []
    for cut in cuts:
        frames += receive(decoder, stream[:cut])
        stream = stream[cut:]
    frames += receive(decoder, stream)

    assert frames == bodies


@given(st.binary(max_size=200))
def test_any_bytes_give_the_same_result_whole_and_byte_by_byte(stream: bytes) -> None:
    def outcome(most: int) -> tuple[list[bytes | memoryview], bool]:
        frames, error = receive_until_error(FrameDecoder(64), stream, most)
        return frames, error is not None

    assert outcome(1) == outcome(len(stream) + 1)
