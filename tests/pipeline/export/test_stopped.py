"""Exports and restores that are stopped and called again, refused, or dry runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.brokers.process import LocalBroker
from pyspark.sql import SparkSession

from barnabas.__main__ import main
from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.export import restore_partition as restoring_partition
from barnabas.pipeline.export.directory import ExportDirectory
from barnabas.pipeline.export.exporting import export_slice, export_topics, missing_slices
from barnabas.pipeline.export.manifest import FILE_NAME, Manifest, decode_manifest, encode_manifest
from barnabas.pipeline.export.planning import plan_export
from barnabas.pipeline.export.record_writer import RecordWriter
from barnabas.pipeline.export.restore_partition import restore_partition
from barnabas.pipeline.export.restore_state import BEGUN, encode_state, file_name
from barnabas.pipeline.export.restoring import partition_tasks, plan_restore, restore_topics
from tests.clients.cluster import Cluster
from tests.pipeline.brokers import KINDS, SharedBrokers
from tests.pipeline.export.both_ways import (
    accept,
    delete_topic,
    export_request,
    files_of,
    left_for,
    make_like,
    produce_all_kinds,
    read_all,
    release,
    restore_request,
    some_of_each,
    topic_names,
    work,
)

RECORD_COUNT = 200


@pytest.fixture
def topic(brokers: SharedBrokers) -> str:
    """One of 200 records in one partition of the source, with a setting of its own."""
    name = Cluster(brokers["barnabas"].address).topic(max_message_bytes="100000")
    produce_all_kinds(brokers["barnabas"], name, 0, RECORD_COUNT)
    return name


@pytest.fixture
def exported(brokers: SharedBrokers, spark: SparkSession, topic: str, tmp_path: Path) -> Path:
    """The directory of the topic's export."""
    export_topics(spark, export_request(brokers["barnabas"], topic), str(tmp_path / "out"))
    return tmp_path / "out"


def stop_export(broker: LocalBroker, topic: str, location: Path) -> Manifest:
    """Leaves the files of an export that was killed: its plan, one slice, and a piece of another."""
    directory, request = ExportDirectory(str(location)), export_request(broker, topic)
    plan = asyncio.run(plan_export(request))
    directory.write_text(FILE_NAME, encode_manifest(plan))
    first, second, *_ = missing_slices(request, directory, plan)
    export_slice(first)
    Path(directory.path(f"{second.piece.path}.unfinished")).write_bytes(b"PAR1")
    return plan


def test_an_export_goes_on_with_the_plan_that_it_had(
    brokers: SharedBrokers, spark: SparkSession, topic: str, tmp_path: Path
) -> None:
    source = brokers["barnabas"]
    group = Cluster(source.address).group()
    work(source, group, topic, 20, accept)
    plan = stop_export(source, topic, tmp_path)
    first = next(tmp_path.rglob("*.parquet"))
    written_at = first.stat().st_mtime_ns
    produce_all_kinds(source, topic, 0, 10)
    work(source, group, topic, 50, accept)

    manifest = export_topics(spark, export_request(source, topic), str(tmp_path))

    assert (manifest.record_count, manifest.share_groups) == (RECORD_COUNT, plan.share_groups)
    assert first.stat().st_mtime_ns == written_at
    assert decode_manifest((tmp_path / FILE_NAME).read_text(), FILE_NAME) == manifest


def test_another_export_is_not_mixed_into_one_that_was_stopped(
    brokers: SharedBrokers, spark: SparkSession, topic: str, tmp_path: Path
) -> None:
    source = brokers["barnabas"]
    stop_export(source, topic, tmp_path)
    other = Cluster(source.address).topic()
    with pytest.raises(OptionError, match=f"^--topics: .* with {topic} and not with {other}"):
        export_topics(spark, export_request(source, other), str(tmp_path))


def test_a_whole_export_is_not_overwritten(
    brokers: SharedBrokers, spark: SparkSession, topic: str, exported: Path
) -> None:
    with pytest.raises(PipelineError, match="holds a complete export"):
        export_topics(spark, export_request(brokers["barnabas"], topic), str(exported))


class StoppingWriter(RecordWriter):
    """Dies once it has written some batches."""

    def write(self, batch: Any) -> None:
        super().write(batch.slice(0, 33))
        self.flush()
        raise KeyboardInterrupt


def stop_restore(target: LocalBroker, exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore that was killed when 33 records of a slice had arrived."""
    request, directory = restore_request(target), ExportDirectory(str(exported))
    plan = plan_restore(request, str(exported))
    state = make_like(request, plan)
    directory.write_text(file_name(plan.cluster_id), encode_state(state))
    (task,) = partition_tasks(request, directory, plan.manifest, state)
    with monkeypatch.context() as patched:
        patched.setattr(restoring_partition, "RecordWriter", StoppingWriter)
        with pytest.raises(KeyboardInterrupt):
            restore_partition(task)


def test_a_restore_goes_on_behind_the_records_that_arrived(
    brokers: SharedBrokers, spark: SparkSession, topic: str, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = brokers["kafka"]
    stop_restore(target, exported, monkeypatch)
    report = restore_topics(spark, restore_request(target), str(exported))
    assert (report.record_count, report.written_count) == (RECORD_COUNT, RECORD_COUNT - 33)


def test_a_restore_that_goes_on_keeps_settings_changed_meanwhile(
    brokers: SharedBrokers, spark: SparkSession, topic: str, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = brokers["kafka"]
    stop_restore(target, exported, monkeypatch)
    Cluster(target.address).set_topic(topic, {"max.message.bytes": "200000"})
    restore_topics(spark, restore_request(target), str(exported))
    restored = asyncio.run(plan_export(export_request(target, topic)))
    assert restored.topics[0].settings["max.message.bytes"] == "200000"
    assert read_all(target, topic) == read_all(brokers["barnabas"], topic)


def test_a_restore_that_is_done_is_not_done_again(
    brokers: SharedBrokers, spark: SparkSession, exported: Path
) -> None:
    restore_topics(spark, restore_request(brokers["kafka"]), str(exported))
    with pytest.raises(PipelineError, match="was restored into this cluster already"):
        restore_topics(spark, restore_request(brokers["kafka"]), str(exported))


def test_records_of_other_producers_are_recognized(
    brokers: SharedBrokers, spark: SparkSession, topic: str, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = brokers["kafka"]
    stop_restore(target, exported, monkeypatch)
    produce_all_kinds(target, topic, 0, 5)
    with pytest.raises(Exception, match=f"{topic}-0 has records between offsets 0 and 37 that aren't"):
        restore_topics(spark, restore_request(target), str(exported))


def test_a_topic_with_records_is_refused_unless_they_may_be_appended_to(
    brokers: SharedBrokers, spark: SparkSession, topic: str, exported: Path
) -> None:
    target = brokers["kafka"]
    Cluster(target.address).topic(name=topic)
    produce_all_kinds(target, topic, 0, 7)
    with pytest.raises(PipelineError, match=f"The topic {topic} has records already; --append"):
        restore_topics(spark, restore_request(target), str(exported))
    report = restore_topics(spark, restore_request(target, append=True), str(exported))
    assert report.notes == (f"{topic}: it was there before, so its settings are left as they are",)
    assert read_all(target, topic)[0][7:] == read_all(brokers["barnabas"], topic)[0]


def remove_a_file(exported: Path) -> None:
    next(exported.rglob("*.parquet")).unlink()


def swap_two_files(exported: Path) -> None:
    first, second, *_ = sorted(exported.rglob("*.parquet"))
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)


def break_a_file(exported: Path) -> None:
    next(exported.rglob("*.parquet")).write_bytes(b"PAR1")


def forget_the_end(exported: Path) -> None:
    manifest = json.loads((exported / FILE_NAME).read_text())
    (exported / FILE_NAME).write_text(json.dumps({**manifest, "is_complete": False}))


def remove_the_manifest(exported: Path) -> None:
    (exported / FILE_NAME).unlink()


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (remove_a_file, r"\.parquet is missing"),
        (swap_two_files, r"\.parquet does not hold the offsets in its name"),
        (break_a_file, r"\.parquet is damaged"),
        (forget_the_end, "was stopped before its end"),
        (remove_the_manifest, "holds no export"),
    ],
)
def test_an_incomplete_export_is_not_restored(
    brokers: SharedBrokers, exported: Path, damage: Callable[[Path], None], told: str
) -> None:
    damage(exported)
    with pytest.raises(PipelineError, match=told):
        plan_restore(restore_request(brokers["kafka"]), str(exported))


def test_a_topic_with_other_partitions_is_refused(brokers: SharedBrokers, topic: str, exported: Path) -> None:
    Cluster(brokers["kafka"].address).topic(2, name=topic)
    with pytest.raises(PipelineError, match="has 2 partitions, and was exported with 1"):
        plan_restore(restore_request(brokers["kafka"]), str(exported))


def test_a_group_that_is_not_there_is_named(brokers: SharedBrokers, topic: str) -> None:
    request = export_request(brokers["barnabas"], topic, groups=("missing",))
    with pytest.raises(OptionError, match=r"^--groups: there is no group 'missing'"):
        asyncio.run(plan_export(request))


@pytest.fixture
def unchanged(brokers: SharedBrokers, topic: str, tmp_path: Path) -> Iterator[None]:
    """Checks that no file and no topic is created."""
    before = files_of(tmp_path), topic_names(brokers["kafka"]), topic_names(brokers["barnabas"])
    yield
    assert (files_of(tmp_path), topic_names(brokers["kafka"]), topic_names(brokers["barnabas"])) == before


@pytest.mark.kafka
@pytest.mark.usefixtures("unchanged")
def test_a_dry_export_prints_counts_and_sizes(
    brokers: SharedBrokers, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = ["--servers", brokers["barnabas"].address]
    assert (
        main(
            ["pipeline", "export", *servers, "--topics", topic, "--to", str(tmp_path), "--dry-run", "--json"]
        )
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert told["topics"][topic]["offsets"] == RECORD_COUNT
    assert told["topics"][topic]["estimated_bytes"] > RECORD_COUNT
    assert told["slices"] == 1


@pytest.mark.usefixtures("exported", "unchanged")
def test_a_dry_restore_prints_its_plan(
    brokers: SharedBrokers, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--from", str(tmp_path / "out"), "--servers", brokers["kafka"].address]
    assert main(["pipeline", "restore", *arguments, "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        f"{topic}: would be made; {RECORD_COUNT} records for 1 partition"
    )


def test_records_that_a_group_accepted_before_a_stop_are_not_delivered_again(
    brokers: SharedBrokers, spark: SparkSession, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = brokers["barnabas"], brokers["kafka"]
    group = Cluster(source.address).group()
    work(source, group, topic, RECORD_COUNT - 10, accept)
    export_topics(spark, export_request(source, topic), str(tmp_path))
    stop_restore(target, tmp_path, monkeypatch)
    restore_topics(spark, restore_request(target), str(tmp_path))
    assert len(left_for(target, group, topic)) == 10


@pytest.mark.parametrize("kind", KINDS)
def test_a_restore_that_was_stopped_after_the_groups_were_set_sets_them_to_the_same_again(
    brokers: SharedBrokers, spark: SparkSession, topic: str, tmp_path: Path, kind: str
) -> None:
    source, target = brokers["barnabas"], brokers[kind]
    group = Cluster(source.address).group()
    work(source, group, topic, 30, some_of_each)
    work(source, group, topic, 5, release)
    export_topics(spark, export_request(source, topic), str(tmp_path))
    left = left_for(source, group, topic)
    if target is source:
        delete_topic(source, topic)
    restore_topics(spark, restore_request(target), str(tmp_path))
    (noted,) = tmp_path.glob("restore-*.json")
    noted.write_text(json.dumps({**json.loads(noted.read_text()), "progress": BEGUN}))

    report = restore_topics(spark, restore_request(target), str(tmp_path))

    assert (report.written_count, report.notes) == (0, ())
    assert left_for(target, group, topic) == left
