"""The broker's own configuration: types, what it derives, and values that must fit each other."""

import pytest

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.errors import ConfigError
from barnabas.storage.log_config import FlushPolicy


def test_values_have_their_types() -> None:
    config = BrokerConfig({"log.dirs": "/data", "advertised.listeners": "PLAINTEXT://h:1"})
    assert config.integer("num.partitions") == 1
    assert config.flag("auto.create.topics.enable") is True
    assert config.text("log.flush") == "interval"
    assert config.items("listeners") == ("PLAINTEXT://:9092",)
    assert config.items("controller.listener.names") == ()
    assert config["log.retention.ms"] is None
    assert config.log_directory == "/data"
    assert config.node_id == 1
    assert (config.listeners[0].advertised_host, config.listeners[0].advertised_port) == ("h", 1)


def test_the_storage_layer_is_told_its_part() -> None:
    storage = BrokerConfig({"log.flush": "always", "producer.id.expiration.ms": "5"}).storage_config()
    assert storage.flush is FlushPolicy.ALWAYS
    assert (storage.flush_interval_ms, storage.flush_bytes) == (1000, 64 * 1024 * 1024)
    assert storage.producer_id_expiration_ms == 5


def test_metadata_never_goes_by_its_age() -> None:
    config = BrokerConfig({"metadata.log.segment.bytes": str(8 * 1024 * 1024)}).metadata_log_config()
    assert (config.retention_ms, config.retention_bytes) == (-1, -1)
    assert config.segment_bytes == 8 * 1024 * 1024


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            {"group.share.record.lock.duration.ms": "1000"},
            (
                "group.share.record.lock.duration.ms must be greater than or equal to "
                "group.share.min.record.lock.duration.ms."
            ),
        ),
        (
            {"group.share.max.session.timeout.ms": "45000", "group.share.session.timeout.ms": "50000"},
            (
                "group.share.session.timeout.ms must be less than or equal to "
                "group.share.max.session.timeout.ms."
            ),
        ),
        (
            {
                "group.share.min.session.timeout.ms": "1",
                "group.share.session.timeout.ms": "5000",
            },
            "group.share.heartbeat.interval.ms must be less than group.share.session.timeout.ms.",
        ),
        (
            {"group.share.max.share.sessions": "10"},
            "group.share.max.share.sessions must be greater than or equal to group.share.max.size.",
        ),
        (
            {"group.share.assignors": "simple,other"},
            "group.share.assignors must be 'simple', since there is no other assignor.",
        ),
        (
            {"log.cleaner.min.compaction.lag.ms": "10", "log.cleaner.max.compaction.lag.ms": "5"},
            (
                "log.cleaner.min.compaction.lag.ms must be less than or equal to "
                "log.cleaner.max.compaction.lag.ms."
            ),
        ),
        ({"log.dirs": "/a,/b"}, "log.dirs must name one directory, not 2: the broker has a single one."),
        ({"listeners": "SSL://:1"}, "listener SSL asks for SSL, and only PLAINTEXT is served."),
    ],
)
def test_values_that_do_not_fit_each_other_are_refused(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        BrokerConfig(given)
    assert str(raised.value) == complaint
