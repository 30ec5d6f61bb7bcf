"""The arguments of ingest, compact and replay, and the errors for wrong ones."""

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.__main__ import main
from barnabas.pipeline.replay.options import CHUNK_RECORDS

SERVERS = ("--servers", "127.0.0.1:1")
INGEST = ("ingest", *SERVERS, "--topics", "orders", "--table", "lake", "--checkpoint", "c")
REPLAY = ("replay", *SERVERS, "--progress", "p")


def run(arguments: Sequence[str]) -> int:
    """The exit code of `barnabas pipeline ...`; nothing here comes as far as Spark."""
    return main(["pipeline", *arguments])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((*INGEST, "--schema", "a.xml"), "--schema: a.xml ends in none of"),
        ((*INGEST, "--partition-by", "a b"), "--partition-by: 'a b' is not NAME or NAME=EXPRESSION"),
        ((*INGEST, "--storage", "a=b"), "--storage: is not for parquet"),
        ((*INGEST, "--invalid", "reject"), "--invalid: reject needs a schema"),
        ((*INGEST, "--invalid", "reject", "--schema", "a.json"), "--invalid: reject is for the source"),
        ((*INGEST, "--side-table", "x"), "--side-table: is needed with invalid=side-table, and only then"),
        ((*INGEST, "--interval-ms", "-1"), "--interval-ms: -1 is not 0 or more"),
        ((*INGEST, "--locks", "5"), "--locks: is for share groups"),
        ((*INGEST, "--option", "x"), "--option: 'x' is not NAME=VALUE"),
        (("compact", "--table", "lake", "--target-bytes", "1"), "--target-bytes: 1 is not from"),
        ((*REPLAY,), "--table: give either a table or topic_options"),
        (("replay", *SERVERS, "--table", "lake"), "--progress: is needed"),
        ((*REPLAY, "--table", "lake", "--from", "noon"), "--from: 'noon' is no time"),
        ((*REPLAY, "--table", "lake", "--partitions", "a"), "--partitions: 'a' is not numbers"),
        ((*REPLAY, "--table", "lake", "--records-per-second", "0"), "--records-per-second: 0.0 is not more"),
        ((*REPLAY, "--table", "lake", "--from", "2026-01-02", "--to", "2026-01-01"), "--to: "),
    ],
)
def test_a_wrong_argument_is_named_as_the_user_wrote_it(
    arguments: Sequence[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    assert capsys.readouterr().err.startswith(f"barnabas: {complaint}")


def parsed(command: Any, arguments: Sequence[str]) -> Any:
    parser = ArgumentParser()
    command.add_arguments(parser)
    return command._wanted(parser.parse_args(arguments[1:]))


def test_a_group_reads_as_a_share_group_and_none_by_offsets() -> None:
    from barnabas.pipeline.ingest import command

    by_offset = parsed(command, INGEST)
    assert by_offset.source == "kafka-topic"
    assert by_offset.source_options == {
        "servers": "127.0.0.1:1",
        "topics": "orders",
        "startingOffsets": "earliest",
    }
    later = parsed(command, (*INGEST, "--option", "startingoffsets=latest"))
    assert later.source_options["startingoffsets"] == "latest"
    assert "startingOffsets" not in later.source_options
    shared = parsed(command, (*INGEST, "--group", "g", "--option", "maxRecordsPerBatch=5"))
    assert shared.source == "kafka-share"
    assert shared.source_options["group"] == "g"
    assert shared.source_options["maxRecordsPerBatch"] == "5"
    assert "startingOffsets" not in shared.source_options


def test_times_without_an_offset_are_utc() -> None:
    from barnabas.pipeline.replay import command

    times = ("--from", "1970-01-01T00:00:01", "--to", "1970-01-01T02:00:00+01:00")
    wanted = parsed(command, (*REPLAY, "--table", "lake", "--partitions", "0,2", *times))
    assert (wanted.from_ms, wanted.to_ms, wanted.partitions) == (1000, 3_600_000, [0, 2])
    assert wanted.chunk_records == CHUNK_RECORDS


@pytest.mark.parametrize(
    ("batches", "records", "repeated", "schema", "line"),
    [
        (1, 43, 0, (), "Wrote 43 records in 1 batch to lake"),
        (
            2,
            1,
            1,
            (),
            "Wrote 1 record in 2 batches to lake; 1 of the batches had been written by an earlier run",
        ),
        (1, 43, 0, ("--schema", "a.json"), "Wrote 43 records in 1 batch to lake; 2 did not fit the schema"),
    ],
)
def test_the_summary_counts_and_names_the_schema_only_if_there_is_one(
    batches: int, records: int, repeated: int, schema: Sequence[str], line: str
) -> None:
    from barnabas.pipeline.ingest import command

    sums = {"batches": batches, "records": records, "repeated": repeated, "invalid": 2 if schema else 0}
    assert command.summary_line(sums, parsed(command, (*INGEST, *schema))) == line
