"""The alternative to `kafka-share` for a share group: a consumer on the driver that holds the records.

This is the simplest source that Spark's Python API allows. confluent-kafka's ShareConsumer polls in the
driver, the rows go through the driver, and a poll is acknowledged when the next one starts. A batch is one
poll, because in explicit mode the first poll must be acknowledged before the second. A failed batch cannot be
read again, which this comparison ignores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from confluent_kafka import AcknowledgeType, Message, ShareConsumer
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

POLL_SECONDS = 0.2


class DriverHeldSource(DataSource):
    """Options: servers, group, topic, maxRecordsPerBatch."""

    @classmethod
    def name(cls) -> str:
        return "driver-held"

    def schema(self) -> str:
        return "key binary, value binary, topic string, partition int, offset bigint"

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:  # noqa: N802
        return DriverHeldReader(dict(self.options))


class DriverHeldReader(SimpleDataSourceStreamReader):
    """Offsets count the polls."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        self._consumer: ShareConsumer | None = None
        self._held: list[Message] = []

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"polls": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[Any, ...]], dict[str, int]]:
        consumer = self._open()
        for message in self._held:
            consumer.acknowledge(message, AcknowledgeType.ACCEPT)
        if self._held:
            consumer.commit_sync(30)
        self._held = list(consumer.poll(POLL_SECONDS))
        rows = [
            (one.key(), one.value(), one.topic(), one.partition(), one.offset())
            for one in self._held
            if one.error() is None
        ]
        return iter(rows), {"polls": start["polls"] + 1} if rows else start

    def readBetweenOffsets(  # noqa: N802
        self, start: dict[str, int], end: dict[str, int]
    ) -> Iterator[tuple[Any, ...]]:
        raise NotImplementedError("a share group does not deliver a record again to the member that holds it")

    def _open(self) -> ShareConsumer:
        if self._consumer is None:
            self._consumer = ShareConsumer(
                {
                    "bootstrap.servers": self._options["servers"],
                    "group.id": self._options["group"],
                    "share.acknowledgement.mode": "explicit",
                    "max.poll.records": int(self._options["maxrecordsperbatch"]),
                    "log_level": 0,
                }
            )
            self._consumer.subscribe([self._options["topic"]])
        return self._consumer
