"""The coordinates of a batch's unreadable records: lost or corrupt ones.

Tasks write them under the option `sideTable`, a directory or URI that every executor can write to, as lines
of JSON: `spark.read.json(side_table)` is the table. The name of a file has its coordinates, so a repeated
task replaces its earlier files.

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
        """Raises `PipelineError` for an unusable directory."""
        self._directory = Directory("sideTable", uri)

    def note(self, topic: str, partition: int, unread: OffsetRange, reason: str) -> None:
        """Writes one row. Raises `PipelineError` if that fails."""
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
