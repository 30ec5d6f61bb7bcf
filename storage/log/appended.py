"""The outcome of an append to a log. Pure."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from barnabas.runtime.completion import Completion


class Appended(NamedTuple):
    """The place of an append's records in the log: offsets, both inclusive.

    A batch that its producer sent again has the offsets of its first append.
    `log_append_time_ms` is -1 unless the topic has log append time, or the batch was a duplicate.
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int


Append: TypeAlias = Completion[Appended]
"""Complete when the bytes are as durable as `log.flush` promises."""
