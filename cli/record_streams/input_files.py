"""Reads records from files, pipes and terminals, line by line as they arrive."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.cli.record_streams.record_input import (
    InputError,
    NewRecord,
    record_of_json,
    record_of_line,
)

STANDARD_INPUT: Final = "-"
LINE_BYTES_MAX: Final = 32 * 1024 * 1024
"""A longer line is refused, because it could not be a record of any usual broker."""
CHUNK_BYTES: Final = 64 * 1024


class Form(NamedTuple):
    """The form of the input."""

    as_json: bool
    key_separator: bytes | None
    is_whole: bool
    """Whether each file is the value of one record."""


async def read_records(paths: Sequence[str], form: Form) -> AsyncGenerator[NewRecord]:
    """The records of the files, one file after the other.

    Raises `InputError`, whose message names the line, and OSError.
    """
    for path in paths:
        if form.is_whole:
            yield NewRecord(await _whole(path))
            continue
        number = 0
        async with aclosing(_lines(path)) as lines:
            async for line in lines:
                number += 1
                try:
                    record = (
                        record_of_json(line) if form.as_json else record_of_line(line, form.key_separator)
                    )
                except InputError as error:
                    raise InputError(f"line {number} of {_name(path)} is no record: {error}") from error
                yield record


async def _whole(path: str) -> bytes:
    with _opened(path) as descriptor:
        data = bytearray()
        async for chunk in _chunks(descriptor):
            data += chunk
        return bytes(data)


async def _lines(path: str) -> AsyncGenerator[bytes]:
    """The lines without their ends. The last one may lack its end."""
    rest = b""
    with _opened(path) as descriptor:
        async for chunk in _chunks(descriptor):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line.removesuffix(b"\r")
            if len(rest) > LINE_BYTES_MAX:
                raise InputError(f"a line of {_name(path)} is longer than {LINE_BYTES_MAX} bytes")
    if rest:
        yield rest


async def _chunks(descriptor: int) -> AsyncGenerator[bytes]:
    """The bytes as they arrive. A thread would not end with the event loop while it waits for them."""
    while True:
        await _wait_for_bytes(descriptor)
        chunk = os.read(descriptor, CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


async def _wait_for_bytes(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()
    try:
        loop.add_reader(descriptor, arrived.set)
    except PermissionError:  # a regular file, whose bytes are there
        return
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(descriptor)


@contextmanager
def _opened(path: str) -> Generator[int]:
    """The file's descriptor. Standard input stays open."""
    if path == STANDARD_INPUT:
        yield sys.stdin.fileno()
        return
    descriptor = os.open(Path(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _name(path: str) -> str:
    return "standard input" if path == STANDARD_INPUT else path
