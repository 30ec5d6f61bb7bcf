"""Where an import may write to."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.kafka_import.importing import import_directory
from barnabas.storage.directory.meta_properties import FILE_NAME, MetaProperties, encode_meta_properties
from barnabas.storage.errors import InvalidDirectory


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A directory of Apache Kafka's that no topic was ever made in."""
    path = tmp_path / "kafka"
    (path / "__cluster_metadata-0").mkdir(parents=True)
    properties = MetaProperties(node_id=1, directory_id=UUID(int=7), cluster_id="c")
    (path / FILE_NAME).write_bytes(encode_meta_properties(properties))
    return path


def run(source: Path, target: Path) -> None:
    import_directory(source, target, BrokerConfig({}), lambda: 0, link=False)


@pytest.mark.parametrize("below", ["", "barnabas", "a/b", "../link", "x/../barnabas"])
def test_nothing_is_written_into_the_directory_of_kafka(source: Path, below: str) -> None:
    (source.parent / "link").symlink_to(source)
    before = sorted(source.rglob("*"))

    with pytest.raises(InvalidDirectory, match=r"stays as it is: name a directory outside of it\.$"):
        run(source, source / below)

    assert sorted(source.rglob("*")) == before


def test_a_directory_beside_it_may_have_a_name_that_starts_alike(source: Path) -> None:
    target = source.parent / "kafka-imported"

    run(source, target)

    assert (target / FILE_NAME).exists()
