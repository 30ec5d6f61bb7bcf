"""`barnabas log dump` beside Kafka's own DumpLogSegments: equal in every field, on logs that Barnabas wrote.

The content of share groups' control records is left out, because Kafka decodes their types as those of its
Raft layer.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, started
from tests.clients.cluster import Cluster, numbered
from tests.clients.confluent_polling import poll_values, share_consumer
from tests.clients.installation import installed_barnabas
from tests.clients.polling import eventually
from tests.clients.tools import DUMP_LOG, run_tool

Row = Mapping[str, Any]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS_PER_CODEC = 20
STARTS = 2
"""The broker of the examined directory."""


class Dumped(NamedTuple):
    """A log's directory, and by file name the rows of each program's output."""

    path: Path
    by_kafka: Mapping[str, Sequence[Row]]
    by_barnabas: Mapping[str, Sequence[Row]]


@pytest.fixture(scope="module")
def dumped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dumped]:
    """The log of a topic that was written with every codec and consumed by a share group."""
    settings = {**TEST_SETTINGS, "log.flush.offset.checkpoint.interval.ms": "0"}
    broker = BrokerProcess(installed_barnabas(), tmp_path_factory.mktemp("dumped") / "data", settings)
    with started(broker):
        path = write_log(broker)
        assert broker.stop() == 0
        broker.start()  # the programs read the directory while a broker runs on it
        eventually(lambda: len(leader_epochs(path)) == STARTS, awaited="the broker has opened the log")
        names = sorted(one.name for one in path.iterdir())
        yield Dumped(path, kafka_rows(path, names), barnabas_rows(path))


def leader_epochs(path: Path) -> list[str]:
    """One line for each start that opened the log. The file has each of them twice."""
    lines = (path / "leader-epoch-checkpoint").read_text().splitlines()[2:]
    assert lines[::2] == lines[1::2]
    return lines[::2]


def write_log(broker: BrokerProcess) -> Path:
    cluster = Cluster(broker.address)
    topic = cluster.topic(index_interval_bytes="200")
    for codec in CODECS:
        values = numbered(RECORDS_PER_CODEC, codec)
        cluster.produce(topic, values, compression_type=codec, enable_idempotence=True, batch_size=400)
    consumer = share_consumer(broker.address, cluster.group(), topic, mode="implicit")
    poll_values(consumer, len(CODECS) * RECORDS_PER_CODEC)
    consumer.close()
    return broker.data_directory / f"{topic}-0"


def kafka_rows(path: Path, names: Sequence[str]) -> dict[str, list[Row]]:
    """The output of DumpLogSegments for each file, its lines as names and values."""
    files = [str(path / name) for name in names if name.endswith((".log", "index", ".snapshot"))]
    files = [file for file in files if not file.endswith(".shareindex")]
    rows: dict[str, list[Row]] = {}
    name = ""
    for line in run_tool(DUMP_LOG, "--print-data-log", "--files", ",".join(files)).splitlines():
        if line.startswith("Dumping "):
            name = line.rpartition("/")[2]
        elif re.match(r"(\| )?(baseOffset|offset|timestamp|producerId): ", line):
            fields = dict(re.findall(r"(\w+): (\S+)", line))
            rows.setdefault(name, []).append({"is_record": line.startswith("| "), **fields})
    return rows


def barnabas_rows(path: Path) -> dict[str, list[Row]]:
    command: list[str | Path] = [
        installed_barnabas(),
        "log",
        "dump",
        "--records",
        "--indexes",
        "--json",
        path,
    ]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows: dict[str, list[Row]] = {}
    for row in map(json.loads, printed.splitlines()):
        if row["type"] not in ("segment", "index", "file"):
            rows.setdefault(row["file"].rpartition("/")[2], []).append(row)
    return rows


def files_of(dumped: Dumped, suffix: str) -> list[str]:
    names = [name for name in dumped.by_barnabas if name.endswith(suffix)]
    assert names
    return names


BATCH_FIELDS = {
    "baseOffset": "base_offset",
    "lastOffset": "last_offset",
    "count": "record_count",
    "baseSequence": "base_sequence",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "partitionLeaderEpoch": "leader_epoch",
    "isTransactional": "transactional",
    "isControl": "control",
    "position": "position",
    "CreateTime": "max_timestamp_ms",
    "size": "size_bytes",
    "compresscodec": "codec",
    "crc": "crc",
    "isvalid": "crc_ok",
}


def as_kafka_prints(value: Any) -> str:
    if value is None:
        return "-1"
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_batches_are_the_same(dumped: Dumped) -> None:
    codecs: set[str] = set()
    for name in files_of(dumped, ".log"):
        kafkas = [row for row in dumped.by_kafka[name] if not row["is_record"]]
        ours = [row for row in dumped.by_barnabas[name] if row["type"] == "batch"]
        assert [{field: row[field] for field in BATCH_FIELDS} for row in kafkas] == [
            {field: as_kafka_prints(row[own]) for field, own in BATCH_FIELDS.items()} for row in ours
        ]
        codecs |= {row["codec"] for row in ours}
        assert any(row["control"] for row in ours)
    assert codecs == set(CODECS)


def test_records_are_the_same(dumped: Dumped) -> None:
    count = 0
    for name in files_of(dumped, ".log"):
        kafkas = [row for row in dumped.by_kafka[name] if row["is_record"] and "payload" in row]
        ours = [row for row in dumped.by_barnabas[name] if row["type"] == "record"]
        assert [(row["offset"], row["CreateTime"], row["payload"], row["valueSize"]) for row in kafkas] == [
            (str(row["offset"]), str(row["timestamp_ms"]), row["value"], str(len(row["value"])))
            for row in ours
        ]
        count += len(ours)
    assert count == len(CODECS) * RECORDS_PER_CODEC


@pytest.mark.parametrize(
    ("suffix", "fields"),
    [
        (".index", {"offset": "offset", "position": "position"}),
        (".timeindex", {"timestamp": "timestamp_ms", "offset": "offset"}),
        (
            ".snapshot",
            {
                "producerId": "producer_id",
                "producerEpoch": "producer_epoch",
                "coordinatorEpoch": "coordinator_epoch",
                "lastTimestamp": "timestamp_ms",
                "lastSequence": "last_sequence",
                "lastOffset": "last_offset",
                "offsetDelta": "offset_delta",
            },
        ),
    ],
)
def test_indexes_and_producer_snapshots_are_the_same(
    dumped: Dumped, suffix: str, fields: Mapping[str, str]
) -> None:
    for name in files_of(dumped, suffix):
        ours = dumped.by_barnabas[name]
        assert [{field: row[field] for field in fields} for row in dumped.by_kafka[name]] == [
            {field: str(row[own]) for field, own in fields.items()} for row in ours
        ]
        assert len(ours) > 0


def test_leader_epochs_are_the_same(dumped: Dumped) -> None:
    """Kafka's program does not print this file, because it is text already."""
    ours = dumped.by_barnabas["leader-epoch-checkpoint"]
    assert leader_epochs(dumped.path) == [f"{row['leader_epoch']} {row['start_offset']}" for row in ours]


def test_the_log_is_well_while_a_broker_runs_on_it(dumped: Dumped) -> None:
    command: list[str | Path] = [installed_barnabas(), "log", "verify", "--records", dumped.path.parent]
    verified = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    assert ": all is well" in verified.stdout
