"""The types of arguments that several commands have: they parse a text, or refuse it with the remedy."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from barnabas.cli import times

_PARTITION = re.compile(r"([^:]+)(?::(\d+))?")
_OFFSETS = re.compile(r"(\d+)(?:-(\d+))?")


def topic_partition(text: str) -> tuple[str, int | None]:
    """`TOPIC` or `TOPIC:PARTITION`."""
    topic, partition = _matched(_PARTITION, text, "TOPIC or TOPIC:PARTITION, such as orders:0").groups()
    return topic, None if partition is None else int(partition)


def offset_range(text: str) -> tuple[int, int]:
    """`OFFSET` or `OFFSET-OFFSET`, both inclusive."""
    first, last = _matched(_OFFSETS, text, "an offset or a range of offsets, such as 17 or 20-24").groups()
    return int(first), int(first if last is None else last)


def number_from(least: int) -> Callable[[str], int]:
    """A whole number that is not less than `least`."""

    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdecimal() else least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} on")
        return number

    return parse


def setting(text: str) -> tuple[str, str]:
    """`NAME=VALUE`."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as retention.ms=60000")
    return name.strip(), value.strip()


def time_ms(text: str) -> int:
    """A time, in ms since 1970."""
    return _parsed(times.parse_time_ms, text)


def duration_ms(text: str) -> int:
    """A duration in ms, such as `90s`."""
    return _parsed(times.parse_duration_ms, text)


def _parsed(parse: Callable[[str], int], text: str) -> int:
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _matched(pattern: re.Pattern[str], text: str, expected: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
    return found
