"""Kafka's internal topics are renamed each time that an import in place starts."""

from __future__ import annotations

from pathlib import Path

from barnabas.cli.kafka_import.segment_files import set_aside

BOOTSTRAP = "bootstrap.checkpoint"


def directory_of_kafka(path: Path) -> Path:
    for name in ("__cluster_metadata-0", "__consumer_offsets-7", "t-0"):
        (path / name).mkdir()
        (path / name / "owner").write_text("kafka")
    (path / BOOTSTRAP).write_text("kafka")
    return path


def names(path: Path) -> set[str]:
    return {one.name for one in path.iterdir()}


def test_kafkas_internal_topics_are_renamed_and_other_topics_stay(tmp_path: Path) -> None:
    set_aside(directory_of_kafka(tmp_path))
    assert names(tmp_path) == {
        "__cluster_metadata-0.kafka",
        "__consumer_offsets-7.kafka",
        f"{BOOTSTRAP}.kafka",
        "t-0",
    }


def test_a_replacement_from_an_interrupted_import_is_removed(tmp_path: Path) -> None:
    set_aside(directory_of_kafka(tmp_path))
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "__cluster_metadata-0" / "owner").write_text("an import that was cut short")
    (tmp_path / BOOTSTRAP).write_text("somebody")
    set_aside(tmp_path)
    assert not names(tmp_path) & {"__cluster_metadata-0", BOOTSTRAP}
    assert (tmp_path / "__cluster_metadata-0.kafka" / "owner").read_text() == "kafka"
    assert (tmp_path / f"{BOOTSTRAP}.kafka").read_text() == "kafka"
