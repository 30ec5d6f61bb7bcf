"""The manifest and the state of a restore: written files are read again, and any other file is named."""

import json
from dataclasses import replace

import pytest

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.export.manifest import (
    ACCEPTED,
    ARCHIVING,
    Choices,
    CommittedOffset,
    CommittedRange,
    ConsumerGroup,
    ExportedPartition,
    ExportedSlice,
    ExportedTopic,
    InFlight,
    Manifest,
    ShareGroup,
    SharePosition,
    decode_manifest,
    encode_manifest,
)
from barnabas.pipeline.export.restore_state import (
    ARRIVED,
    RestoredTopic,
    RestoreState,
    decode_state,
    encode_state,
)

MANIFEST = Manifest(
    created_at="2026-01-02T03:04:05+00:00",
    cluster_id="cluster",
    is_complete=True,
    choices=Choices("read_committed", 500_000, ("readers", "workers")),
    topics=(
        ExportedTopic(
            "bücher",
            "id",
            {"retention.ms": "-1"},
            (
                ExportedPartition(0, 3, 9, (ExportedSlice("records/1", 3, 9, 5, 100, "ab"),)),
                ExportedPartition(1, 0, 0, ()),
            ),
        ),
    ),
    share_groups=(
        ShareGroup(
            "workers",
            {},
            (SharePosition("bücher", 0, 4, (InFlight(5, 6, ACCEPTED, 1),)), SharePosition("bücher", 1, 0)),
        ),
    ),
    consumer_groups=(
        ConsumerGroup("readers", (CommittedOffset("bücher", 0, 9, "noted", (CommittedRange(12, 14),)),)),
    ),
    left_out=("something",),
)
STATE = RestoreState(
    ARRIVED, (RestoredTopic("a", True, None, (0, 0)), RestoredTopic("b", False, "id", (7,))), ("a note",)
)


def test_written_contents_are_read_again() -> None:
    assert decode_manifest(encode_manifest(MANIFEST), "manifest.json") == MANIFEST
    assert decode_state(encode_state(STATE), "restore.json") == STATE


def test_an_export_from_before_there_were_ranges_is_read() -> None:
    content = json.loads(encode_manifest(MANIFEST))
    (group,) = content["consumer_groups"]
    del group["offsets"][0]["ranges"]
    (read,) = decode_manifest(json.dumps(content), "manifest.json").consumer_groups
    assert read.offsets == (CommittedOffset("bücher", 0, 9, "noted"),)
    del group["offsets"][0]["metadata"]
    with pytest.raises(PipelineError, match="cannot be read"):
        decode_manifest(json.dumps(content), "manifest.json")


def test_only_an_export_with_records_on_their_way_to_dead_letters_needs_a_newer_reader() -> None:
    (group,) = MANIFEST.share_groups
    position = SharePosition("bücher", 0, 4, (InFlight(5, 6, ARCHIVING, 1),))
    lettered = replace(MANIFEST, share_groups=(replace(group, positions=(position,)),))
    assert [json.loads(encode_manifest(one))["version"] for one in (MANIFEST, lettered)] == [1, 2]
    assert decode_manifest(encode_manifest(lettered), "manifest.json") == lettered


def test_counts_add_up() -> None:
    assert (MANIFEST.record_count, MANIFEST.size_bytes) == (5, 100)


def edited(**changes: object) -> str:
    return json.dumps({**json.loads(encode_manifest(MANIFEST)), **changes})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot be read as the manifest of an export: "),
        ("[]", "cannot be read as the manifest of an export: "),
        ("{}", "is not the manifest of an export"),
        (encode_state(STATE), "is not the manifest of an export"),
        (edited(format="tar"), "is not the manifest of an export"),
        (edited(version=3), "is the manifest of an export in version 3; versions 1 to 2 are read"),
        (edited(topics=["orders"]), "cannot be read as the manifest of an export: "),
        (edited(is_complete="yes"), "cannot be read as the manifest of an export: "),
        (edited(cluster_id=None), "cannot be read as the manifest of an export: "),
    ],
)
def test_any_other_file_is_named(text: str, reason: str) -> None:
    with pytest.raises(PipelineError, match=f"^out/manifest.json {reason}"):
        decode_manifest(text, "out/manifest.json")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "cannot be read as the progress of a restore: "),
        (encode_manifest(MANIFEST), "cannot be read as the progress of a restore: "),
        (
            encode_state(STATE).replace('"version": 1', '"version": 2'),
            "is the progress of a restore in version 2; only version 1 is read",
        ),
    ],
)
def test_any_other_file_than_the_progress_of_a_restore_is_named_so(text: str, reason: str) -> None:
    with pytest.raises(PipelineError, match=f"^out/restore.json {reason}"):
        decode_state(text, "out/restore.json")


def test_a_restore_is_in_a_state_that_is_known() -> None:
    text = encode_state(STATE).replace(ARRIVED, "elsewhere")
    with pytest.raises(PipelineError, match=r"^out/restore.json cannot be read as the progress of a restore"):
        decode_state(text, "out/restore.json")
