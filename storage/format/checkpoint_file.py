"""Kafka's checkpoint files: some lines of text that are replaced as a whole.

    version
    number of entries
    one entry a line

In the data directory they hold an offset for each partition (`topic partition offset`), in a log's directory
its leader epochs (`leader_epochs`).

The format has no checksum, and a changed digit would be another offset. So the last of the offsets that this
broker writes is one of a partition that cannot exist, `##crc32c 0`: the CRC-32C of all bytes before its line.
Apache Kafka ignores the offsets of unknown partitions, and writes files without this one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from crc32c import crc32c

_VERSION = 0
_CHECKSUM = "##crc32c", 0
"""No topic has this name, or one that differs in a single byte."""


class CheckpointCorrupt(ValueError):  # noqa: N818  named as the condition
    """The text is not a checkpoint file of the known version, or its checksum is wrong."""


def encode_lines(entries: Collection[str], count: int | None = None) -> bytes:
    """The file's content; `count` is the number of its entries if others follow."""
    stated = len(entries) if count is None else count
    return "".join(f"{line}\n" for line in (_VERSION, stated, *entries)).encode()


def decode_lines(data: bytes) -> list[str]:
    """The entries; an empty file, which Kafka creates at first, has none. Raises CheckpointCorrupt."""
    lines = data.decode("utf-8", "replace").splitlines()
    if not lines:
        return []
    if lines[0] != str(_VERSION):
        raise CheckpointCorrupt(f"The version is {lines[0]!r}, not {_VERSION}.")
    if len(lines) == 1:
        return []
    entries = lines[2:]
    if lines[1] != str(len(entries)):
        raise CheckpointCorrupt(f"There are {len(entries)} entries and not {lines[1]!r}.")
    return entries


def encode_offsets(offsets: Mapping[tuple[str, int], int]) -> bytes:
    """A checkpoint of one offset per (topic, partition), with its checksum."""
    entries = [_entry(key, offset) for key, offset in sorted(offsets.items())]
    covered = encode_lines(entries, len(entries) + 1)
    return covered + f"{_entry(_CHECKSUM, crc32c(covered))}\n".encode()


def decode_offsets(data: bytes) -> dict[tuple[str, int], int]:
    """The offset of each (topic, partition); raises CheckpointCorrupt for other bytes or a wrong checksum."""
    offsets: dict[tuple[str, int], int] = {}
    for line in decode_lines(data):
        try:
            topic, partition, offset = line.split()
            offsets[topic, int(partition)] = int(offset)
        except ValueError as error:
            raise CheckpointCorrupt(f"{line!r} is not a topic, a partition and an offset.") from error
    checksum = offsets.pop(_CHECKSUM, None)
    if checksum is not None and checksum != crc32c(data[: data.rindex(_CHECKSUM[0].encode())]):
        raise CheckpointCorrupt("Its checksum does not match its bytes.")
    return offsets


def _entry(key: tuple[str, int], offset: int) -> str:
    topic, partition = key
    return f"{topic} {partition} {offset}"
