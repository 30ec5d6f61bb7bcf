"""The targets of an import, and its messages about users and access rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
import structlog

from barnabas.__main__ import main
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.cli.kafka_import.importing import import_directory
from barnabas.protocol.metadata_records import UserScramCredentialRecord, encode_metadata_record
from barnabas.protocol.record_batch import build_batch
from barnabas.protocol.varint import unsigned_varint
from barnabas.storage.directory.meta_properties import FILE_NAME, MetaProperties, encode_meta_properties
from barnabas.storage.errors import InvalidDirectory


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """The command configures the log of the whole process."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A directory of an Apache Kafka without topics."""
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

    with pytest.raises(InvalidDirectory, match=r"which must not change: name a directory outside of it\.$"):
        run(source, source / below)

    assert sorted(source.rglob("*")) == before


def test_a_directory_beside_it_may_have_a_name_with_the_same_beginning(source: Path) -> None:
    target = source.parent / "kafka-imported"

    run(source, target)

    assert (target / FILE_NAME).exists()


def test_users_and_access_rules_without_effect_are_reported(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user = UserScramCredentialRecord(
        name="a", mechanism=1, salt=b"", stored_key=b"", server_key=b"", iterations=4096
    )
    access_rule = unsigned_varint(1) + unsigned_varint(18) + unsigned_varint(0) + b"any bytes"
    values = [(None, encode_metadata_record(user)), (None, access_rule)]
    segment = source / "__cluster_metadata-0" / "00000000000000000000.log"
    segment.write_bytes(build_batch(0, values, leader_epoch=1, timestamp_ms=0))

    assert main(["import", "--from", str(source), "--data-dir", str(source.parent / "imported")]) == 0

    assert capsys.readouterr().err == (
        "barnabas: left out: ACLs (1): this broker has no access control, so every client may do everything\n"
        "barnabas: SCRAM users were imported (1). Clients are asked for a password by listeners with SASL.\n"
    )
