"""Changes before a run goes on: records and topics that are gone, other options, its last step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.brokers.process import LocalBroker
from pyspark.sql import SparkSession

from barnabas.client.cluster.topics import Isolation
from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.export import restoring
from barnabas.pipeline.export.directory import ExportDirectory
from barnabas.pipeline.export.exporting import (
    ExportTask,
    export_slice,
    export_topics,
    find_or_make_plan,
    missing_slices,
)
from barnabas.pipeline.export.manifest import FILE_NAME, encode_manifest
from barnabas.pipeline.export.planning import plan_export
from barnabas.pipeline.export.restore_state import COMPLETE, RestoreState, encode_state
from barnabas.pipeline.export.restoring import plan_restore, restore_topics
from tests.clients.cluster import Cluster
from tests.pipeline.export.both_ways import (
    accept,
    delete_records,
    delete_topic,
    export_request,
    left_for,
    produce_all_kinds,
    restore_request,
    work,
)

RECORD_COUNT = 200


@pytest.fixture
def broker(start_broker: Callable[[str], LocalBroker]) -> LocalBroker:
    return start_broker("barnabas")


@pytest.fixture
def topic(broker: LocalBroker) -> str:
    """One of 200 records in one partition, and three slices."""
    name = Cluster(broker.address).topic(retention_ms="86400000")
    produce_all_kinds(broker, name, 0, RECORD_COUNT)
    return name


def slices(broker: LocalBroker, topic: str, tmp_path: Path, *, from_logs: bool) -> list[ExportTask]:
    request = export_request(broker, topic, from_logs=from_logs)
    return missing_slices(request, ExportDirectory(str(tmp_path)), asyncio.run(plan_export(request)))


@pytest.mark.parametrize("from_logs", [False, True])
def test_an_export_outrun_by_retention_advises_to_begin_again(
    broker: LocalBroker, topic: str, tmp_path: Path, from_logs: bool
) -> None:
    first, second, third = slices(broker, topic, tmp_path, from_logs=from_logs)
    delete_records(broker, topic, 100)
    broker.stop()  # writes down where the log begins
    broker.start()
    for outrun in (first, second):
        start = outrun.piece.start_offset
        with pytest.raises(
            PipelineError, match=f"no record at offset {start}: it holds 100 .* into another directory"
        ):
            export_slice(outrun)
    export_slice(third)
    assert len(list(tmp_path.rglob("*.parquet"))) == 1


@pytest.mark.parametrize("from_logs", [False, True])
def test_an_export_of_a_topic_that_was_created_again_advises_to_begin_again(
    broker: LocalBroker, topic: str, tmp_path: Path, from_logs: bool
) -> None:
    tasks = slices(broker, topic, tmp_path, from_logs=from_logs)
    delete_topic(broker, topic)
    Cluster(broker.address).topic(name=topic)
    produce_all_kinds(broker, topic, 0, RECORD_COUNT)
    with pytest.raises(PipelineError, match=f"The topic {topic} .* was deleted.* into another directory"):
        export_slice(tasks[0])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"isolation": Isolation.READ_UNCOMMITTED},
            "--isolation: .*read_committed and not .*read_uncommitted",
        ),
        ({"slice_offsets": 50}, "--slice-offsets: .* with 70 and not with 50"),
        ({"groups": ("b", "a")}, "--groups: .* with all groups and not with a,b"),
    ],
)
def test_an_export_goes_on_with_the_options_that_it_began_with(
    broker: LocalBroker, topic: str, tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    directory, request = ExportDirectory(str(tmp_path)), export_request(broker, topic)
    plan = asyncio.run(plan_export(request))
    directory.write_text(FILE_NAME, encode_manifest(plan))
    assert find_or_make_plan(directory, request) == plan
    with pytest.raises(OptionError, match=f"^{told}; use the same value, or name another directory"):
        find_or_make_plan(directory, export_request(broker, topic, **changes))


class StopError(Exception):
    """The process ends here."""


@pytest.fixture
def arrived(
    broker: LocalBroker, topic: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The directory of an export. Its restore was killed after its last step, and before it noted that."""
    location = str(tmp_path / "out")
    group = Cluster(broker.address).group()
    work(broker, group, topic, 10, accept)
    export_topics(spark, export_request(broker, topic, data_directories=()), location)
    delete_topic(broker, topic)

    def encode(state: RestoreState) -> str:
        if state.progress == COMPLETE:
            raise StopError
        return encode_state(state)

    with monkeypatch.context() as patched:
        patched.setattr(restoring, "encode_state", encode)
        with pytest.raises(StopError):
            restore_topics(spark, restore_request(broker), location)
    return location


def test_a_restore_whose_records_have_arrived_checks_no_records_or_groups_again(
    broker: LocalBroker, topic: str, spark: SparkSession, arrived: str
) -> None:
    delete_records(broker, topic, 150)
    (group,) = (one.group_id for one in plan_restore(restore_request(broker), arrived).manifest.share_groups)
    work(broker, group, topic, 20, accept)

    report = restore_topics(spark, restore_request(broker), arrived)

    assert (report.record_count, report.written_count) == (RECORD_COUNT, 0)
    assert report.notes == (
        f"The share group {group} gets the records of {topic}-0 again that it accepted above its start.",
    )
    assert len(left_for(broker, group, topic)) == 30
    restored = asyncio.run(plan_export(export_request(broker, topic)))
    assert restored.topics[0].settings == {"retention.ms": "86400000"}
    with pytest.raises(PipelineError, match="was restored into this cluster already"):
        plan_restore(restore_request(broker), arrived)


def test_a_topic_that_was_deleted_since_its_records_arrived_is_noticed(
    broker: LocalBroker, topic: str, arrived: str
) -> None:
    delete_topic(broker, topic)
    Cluster(broker.address).topic(name=topic)
    with pytest.raises(PipelineError, match=r"Topics were deleted since .* delete .*/restore-"):
        plan_restore(restore_request(broker), arrived)
