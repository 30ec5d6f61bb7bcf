"""The log tools on a log directory that Apache Kafka 4.3.1 wrote (tests/storage/test_kafka_segments.py)."""

from collections import Counter

from tests.cli.log_tool.written_logs import LogCommand
from tests.storage.test_kafka_segments import CODECS, RECORDED, VALUES


def test_all_is_well_with_it(log_command: LogCommand) -> None:
    assert log_command.run("verify", "--records", RECORDED) == (0, ["1 partition, 14 batches: all is well"])


def test_kafkas_batches_and_records_are_printed(log_command: LogCommand) -> None:
    rows = log_command.rows("dump", "--records", RECORDED)
    codecs = Counter(row["codec"] for row in rows if row["type"] == "batch" and not row["transactional"])
    assert codecs == dict.fromkeys(CODECS, 2)
    told = {row["offset"]: row for row in rows if row["type"] in ("record", "commit", "abort")}
    assert [told[offset].get("value") for offset in range(len(VALUES))] == VALUES
    assert (told[53]["type"], told[57]["type"]) == ("commit", "abort")
    assert told[7]["headers"] == [{"key": "codec", "value": "none"}]


def test_kafkas_offsets_are_printed(log_command: LogCommand) -> None:
    partition = log_command.rows("describe", RECORDED)[0]
    assert (partition["high_watermark"], partition["log_end_offset"], partition["control_bytes"]) == (
        58,
        58,
        0,
    )
