"""Recorded requests and responses of Apache Kafka 4.3.1 and its clients: `vectors/frames.jsonl`.

The frames of the versions that Apache Kafka 4.4.0 added were written by its message classes. A line holds one
frame in hexadecimal digits, including its length of four bytes.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

from barnabas.protocol.api import find_api
from barnabas.protocol.header import decode_request_header


class RecordedFrame(NamedTuple):
    """One recorded frame; `frame` is without its length, its body starts at `body_offset`."""

    pair: int
    api: str
    api_key: int
    version: int
    direction: str
    correlation_id: int
    client_id: str | None
    frame: bytes
    header_version: int

    @property
    def body_offset(self) -> int:
        if self.direction == "request":
            return decode_request_header(self.frame).body_offset
        return 4 + self.header_version

    @property
    def body(self) -> bytes:
        return self.frame[self.body_offset :]

    @property
    def title(self) -> str:
        return f"{self.api}-v{self.version}-{self.pair}"


@cache
def recorded_frames() -> tuple[RecordedFrame, ...]:
    """All frames, including those of APIs that are not served."""
    lines = (Path(__file__).parent / "vectors" / "frames.jsonl").read_text().splitlines()
    return tuple(_frame(line) for line in lines)


def served_frames(direction: str, *api_keys: int) -> list[RecordedFrame]:
    """The frames of one direction for served APIs and versions; only of the given APIs, if any."""
    return [
        recorded
        for recorded in recorded_frames()
        if recorded.direction == direction
        and _is_served(recorded)
        and (not api_keys or recorded.api_key in api_keys)
    ]


def _is_served(recorded: RecordedFrame) -> bool:
    spec = find_api(recorded.api_key)
    return spec is not None and spec.serves(recorded.version)


def _frame(line: str) -> RecordedFrame:
    row = json.loads(line)
    return RecordedFrame(
        pair=row["id"],
        api=row["api"],
        api_key=row["api_key"],
        version=row["version"],
        direction=row["direction"],
        correlation_id=row["correlation_id"],
        client_id=row["client_id"],
        frame=bytes.fromhex(row["hex"])[4:],
        header_version=row["header_version"],
    )
