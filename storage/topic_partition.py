"""The name of a partition on disk: `<topic>-<partition>`, as Kafka names its directories."""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """One partition by its topic's name; equal to the plain tuple in the checkpoint files."""

    topic: str
    partition: int

    @property
    def directory_name(self) -> str:
        return f"{self.topic}-{self.partition}"


def parse_directory_name(name: str) -> TopicPartition | None:
    """The partition with the directory `name`; None for other names, such as one marked for deletion."""
    topic, dash, partition = name.rpartition("-")
    if not (topic and dash and partition.isascii() and partition.isdigit()):
        return None
    return TopicPartition(topic, int(partition))
