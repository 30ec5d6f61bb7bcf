"""Bytes of other implementations with their meaning, from `vectors/*.json`.

`record_batches` are from the logs of an Apache Kafka 4.3.1 to which librdkafka and the Java client produced.
`group_records` are its `__consumer_offsets` after two share consumers joined and left. `metadata_records` are
its `__cluster_metadata`, and records written by Kafka's own classes that a small cluster does not need.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any


def load_recorded(name: str) -> list[dict[str, Any]]:
    """The rows of the file with this name."""
    rows: list[dict[str, Any]] = json.loads(
        (Path(__file__).parent / "vectors" / f"{name}.json").read_text(encoding="utf-8")
    )
    return rows


def as_plain(record: Any) -> Any:
    """A record, or None, in the form of JSON: structures as objects, ids as text."""
    return None if record is None else json.loads(json.dumps(dataclasses.asdict(record), default=str))


def from_hex(text: str | None) -> bytes | None:
    """Bytes, or None for null."""
    return None if text is None else bytes.fromhex(text)
