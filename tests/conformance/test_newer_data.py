"""A data directory that a newer broker has written: the start fails, and the error has both versions."""

import pytest

from barnabas.broker.node.opening import open_broker
from barnabas.protocol.metadata_records import TopicRecord, decode_metadata_record, encode_metadata_record
from barnabas.protocol.record_batch import build_batch
from barnabas.protocol.varint import NewerVersion
from barnabas.storage.errors import InvalidDirectory
from tests.conformance.conftest import with_log_store_only
from tests.conformance.harness import Lab, open_lab

LOG_PATH = f"/data/__cluster_metadata-0/{0:020d}.log"
pytestmark = with_log_store_only


def of_version_99(record: TopicRecord) -> bytes:
    """The frame's version and the record's type and version are the first three bytes."""
    value = encode_metadata_record(record)
    return value[:2] + b"\x63" + value[3:]


def a_topic(lab: Lab) -> TopicRecord:
    return TopicRecord(name="new", topic_id=lab.broker.log_directory.directory_id)


async def test_a_newer_metadata_record_is_refused_at_the_start_with_both_versions() -> None:
    async with open_lab() as lab:
        await lab.create_topic("t")
        value = of_version_99(a_topic(lab))
        end_offset = lab.broker.metadata.log.store.log_end_offset
        await lab.broker.log_directory.flush()
        filesystem = lab.filesystem.copy()
        filesystem.files[LOG_PATH] += build_batch(end_offset, [(None, value)], leader_epoch=1, timestamp_ms=0)
        before = {path: bytes(content) for path, content in filesystem.files.items() if "metadata" in path}
        with pytest.raises(InvalidDirectory) as raised:
            await open_broker(lab.broker.config, clock=lab.clock, filesystem=filesystem)
        assert str(raised.value) == (
            "/data/__cluster_metadata-0 was written by a newer version of the broker. A TopicRecord has "
            "version 99, and this broker understands version 0. Start that version."
        )
        assert not [path for path in filesystem.files if path.endswith(".damaged")]
        assert bytes(filesystem.files[LOG_PATH]) == before[LOG_PATH]


def test_a_record_of_an_unknown_type_is_a_newer_one() -> None:
    with pytest.raises(NewerVersion, match="type 120, which this broker does not know"):
        decode_metadata_record(b"\x01\x78\x00")
