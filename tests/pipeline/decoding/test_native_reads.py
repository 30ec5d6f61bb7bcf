"""The native decoder reads nothing behind the bytes that it is given: there, memory ends."""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipeline.decoding import DECODED_COLUMNS, BatchError, _native
from barnabas.protocol.records import encode_records
from tests.pipeline.decoding.batches import RECORDS, body_of, damages, logs, resealed, sealed
from tests.pipeline.decoding.decoders import SMALL_BOUNDS
from tests.pipeline.decoding.malformed import BODIES

_PROT_NONE: Final = 0
PAGE: Final = mmap.PAGESIZE


class GuardedPage:
    """A page of memory before a protected one: a read beyond the end kills the process."""

    def __init__(self) -> None:
        self._pages = mmap.mmap(-1, 2 * PAGE)
        self._first = ctypes.c_char.from_buffer(self._pages)
        guard = ctypes.c_void_p(ctypes.addressof(self._first) + PAGE)
        if ctypes.CDLL(None, use_errno=True).mprotect(guard, PAGE, _PROT_NONE):
            raise OSError(ctypes.get_errno(), "mprotect")

    def hold(self, data: bytes) -> memoryview:
        """`data` at the end of the page."""
        self._pages[PAGE - len(data) : PAGE] = data
        return memoryview(self._pages)[PAGE - len(data) : PAGE]


@pytest.fixture(scope="module")
def page() -> GuardedPage:
    return GuardedPage()


def read(data: memoryview) -> None:
    decoder = _native.RecordDecoder(DECODED_COLUMNS, **SMALL_BOUNDS)
    with suppress(BatchError):
        decoder.add(data)
    decoder.take().validate(full=True)


def test_a_log_may_end_anywhere(page: GuardedPage) -> None:
    data = encode_records(RECORDS) * 2
    for end in range(len(data)):
        read(page.hold(data[:end]))


def test_a_batch_may_end_anywhere(page: GuardedPage) -> None:
    batch = encode_records(RECORDS)
    body = body_of(batch)
    for end in range(len(body)):
        read(page.hold(resealed(batch, body[:end])))


@pytest.mark.parametrize("name", BODIES)
def test_a_malformed_batch_may_be_the_last_one(page: GuardedPage, name: str) -> None:
    body, header, _ = BODIES[name]
    read(page.hold(sealed(body, **header)))


@given(logs(kinds=("records",)), st.data())
def test_bodies_of_batches_may_be_damaged(page: GuardedPage, log: list[bytes], data: st.DataObject) -> None:
    damaged = b"".join(resealed(batch, data.draw(damages(body_of(batch)))) for batch in log)
    read(page.hold(damaged[-PAGE:]))
