"""The coordinates of records that a batch should have held and nobody could read: lost, or corrupt.

Written by the tasks under the option `sideTable`, a directory or URI that every executor can write to, as
lines of JSON: `spark.read.json(side_table)` is the table. A file is named after what is in it, so that a task
that is run again replaces what it wrote before.

    {"topic": "orders", "partition": 0, "firstOffset": 90, "lastOffset": 99, "reason": "..."}
"""

from __future__ import annotations

import json
from urllib.parse import quote

from barnabas.pipeline.share_source.ranges import OffsetRange
from barnabas.pipeline.share_source.storage import Directory


class SideTable:
    """The table under one `sideTable`."""

    def __init__(self, uri: str) -> None:
        """Raises `PipelineError` if there can be no such directory."""
        self._directory = Directory("sideTable", uri)

    def note(self, topic: str, partition: int, unread: OffsetRange, reason: str) -> None:
        """Raises `PipelineError` if it cannot be noted."""
        first, last = unread
        row = {
            "topic": topic,
            "partition": partition,
            "firstOffset": first,
            "lastOffset": last,
            "reason": reason,
        }
        name = f"{quote(topic, safe='')}-{partition}-{first}-{last}.json"
        self._directory.write(name, json.dumps(row).encode() + b"\n")
