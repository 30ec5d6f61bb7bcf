"""Kafka's checkpoint files: some lines of text that are replaced as a whole.

    version
    number of entries
    one entry a line

In the data directory they hold an offset for each partition (`topic partition offset`), in a log's directory
its leader epochs (`leader_epochs`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

_VERSION = 0


class CheckpointCorrupt(ValueError):  # noqa: N818  named as the condition
    """The text is not a checkpoint file of the known version."""


def encode_lines(entries: Collection[str]) -> bytes:
    """The file's content."""
    return "".join(f"{line}\n" for line in (str(_VERSION), str(len(entries)), *entries)).encode()


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
    """A checkpoint of one offset per (topic, partition)."""
    return encode_lines(
        [f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items())]
    )


def decode_offsets(data: bytes) -> dict[tuple[str, int], int]:
    """The offset of each (topic, partition); raises CheckpointCorrupt for other bytes."""
    offsets: dict[tuple[str, int], int] = {}
    for line in decode_lines(data):
        try:
            topic, partition, offset = line.split()
            offsets[topic, int(partition)] = int(offset)
        except ValueError as error:
            raise CheckpointCorrupt(f"{line!r} is not a topic, a partition and an offset.") from error
    return offsets
