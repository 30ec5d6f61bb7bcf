"""The broker's own configuration: types, derived configurations, and values that contradict each other."""

import pytest

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.errors import ConfigError
from barnabas.coordinator.metadata.snapshot_settings import SnapshotSettings
from barnabas.storage.log_config import FlushPolicy, StorageConfig

KAFKA_ASSIGNOR = "org.apache.kafka.coordinator.group.assignor"


def test_values_have_their_types() -> None:
    config = BrokerConfig({"log.dirs": "/data", "advertised.listeners": "PLAINTEXT://h:1"})
    assert config.integer("num.partitions") == 1
    assert config.flag("auto.create.topics.enable") is True
    assert config.text("log.flush") == "interval"
    assert config.items("listeners") == ("PLAINTEXT://127.0.0.1:9092",)
    assert config.items("controller.listener.names") == ()
    assert config["log.retention.ms"] is None
    assert config.log_directory == "/data"
    assert config.node_id == 1
    assert (config.listeners[0].advertised_host, config.listeners[0].advertised_port) == ("h", 1)


def test_the_storage_layer_gets_its_settings() -> None:
    storage = BrokerConfig({"log.flush": "always", "producer.id.expiration.ms": "5"}).storage_config()
    assert storage.flush is FlushPolicy.ALWAYS
    assert (storage.flush_interval_ms, storage.flush_bytes) == (1000, 64 * 1024 * 1024)
    assert storage.producer_id_expiration_ms == 5


def test_metadata_is_never_deleted_by_its_age() -> None:
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
                "group.share.min.record.lock.duration.ms (15000)."
            ),
        ),
        (
            {"group.share.max.session.timeout.ms": "45000", "group.share.session.timeout.ms": "50000"},
            (
                "group.share.session.timeout.ms must be less than or equal to "
                "group.share.max.session.timeout.ms (45000)."
            ),
        ),
        (
            {
                "group.share.min.session.timeout.ms": "1",
                "group.share.session.timeout.ms": "5000",
            },
            "group.share.heartbeat.interval.ms must be less than group.share.session.timeout.ms (5000).",
        ),
        (
            {"group.share.max.share.sessions": "10"},
            "group.share.max.share.sessions must be greater than or equal to group.share.max.size (200).",
        ),
        (
            {"group.share.assignors": "simple,other"},
            (
                "Invalid value simple,other for configuration group.share.assignors: "
                "It must be 'simple' or 'load', because there is no other assignor."
            ),
        ),
        (
            {"group.share.assignors": f"{KAFKA_ASSIGNOR}.UniformAssignor"},
            (
                "Invalid value uniform for configuration group.share.assignors: "
                "It must be 'simple' or 'load', because there is no other assignor."
            ),
        ),
        (
            {"group.consumer.assignors": f"range,{KAFKA_ASSIGNOR}.RangeAssignor"},
            (
                "Invalid value range,range for configuration group.consumer.assignors: "
                "Each of these at most once: uniform, range."
            ),
        ),
        (
            {"group.consumer.assignors": "com.example.Assignor"},
            (
                "Invalid value com.example.Assignor for configuration group.consumer.assignors: "
                "Each of these at most once: uniform, range."
            ),
        ),
        (
            {"group.coordinator.rebalance.protocols": "consumer"},
            (
                "Invalid value consumer for configuration group.coordinator.rebalance.protocols: "
                "Disabling the 'classic' protocol is not supported."
            ),
        ),
        (
            {"group.coordinator.rebalance.protocols": "classic,Consumer"},
            (
                "Invalid value Consumer for configuration group.coordinator.rebalance.protocols: "
                "String must be one of: classic, consumer, share, streams."
            ),
        ),
        (
            {"log.cleaner.min.compaction.lag.ms": "10", "log.cleaner.max.compaction.lag.ms": "5"},
            (
                "log.cleaner.min.compaction.lag.ms must be less than or equal to "
                "log.cleaner.max.compaction.lag.ms (5)."
            ),
        ),
        ({"log.dirs": " "}, "log.dirs is empty, and must name the data directory."),
        ({"log.dirs": ","}, "log.dirs is empty, and must name the data directory."),
        ({"log.dir": ""}, "log.dir is empty, and must name the data directory."),
        ({"log.dirs": "/a,/b"}, "log.dirs must name one directory, not 2: the broker has a single one."),
        (
            {"sasl.initial.users": "alice:s3cret,bob"},
            "sasl.initial.users: its entry number 2 is not NAME:PASSWORD.",
        ),
    ],
)
def test_values_that_contradict_each_other_are_refused(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        BrokerConfig(given)
    assert str(raised.value) == complaint


@pytest.mark.parametrize(
    ("given", "expected_bytes"),
    [
        ({}, 256 << 20),
        ({"socket.request.max.bytes": str(300 << 20)}, 300 << 20),
        ({"queued.max.request.bytes": "-1", "socket.request.max.bytes": str(300 << 20)}, -1),
    ],
)
def test_all_requests_together_may_be_as_large_as_one(given: dict[str, str], expected_bytes: int) -> None:
    assert BrokerConfig(given).integer("queued.max.request.bytes") == expected_bytes


def test_assignors_may_have_the_names_of_their_classes_in_kafka() -> None:
    config = BrokerConfig(
        {
            "group.share.assignors": f"{KAFKA_ASSIGNOR}.SimpleAssignor",
            "group.consumer.assignors": f"{KAFKA_ASSIGNOR}.RangeAssignor, {KAFKA_ASSIGNOR}.UniformAssignor",
        }
    )
    assert config.items("group.share.assignors") == ("simple",)
    assert config.items("group.consumer.assignors") == ("range", "uniform")


@pytest.mark.parametrize("protocols", ["classic", "classic,consumer,streams", "share , streams,classic"])
def test_kafkas_protocols_of_groups_are_accepted(protocols: str) -> None:
    config = BrokerConfig({"group.coordinator.rebalance.protocols": protocols})
    assert "classic" in config.items("group.coordinator.rebalance.protocols")


def test_the_cleaner_gets_its_settings() -> None:
    storage = BrokerConfig(
        {
            "log.cleaner.enable": "false",
            "log.cleaner.backoff.ms": "7",
            "log.cleaner.dedupe.buffer.size": "2000000",
            "log.cleaner.io.buffer.size": "4096",
            "log.cleaner.io.max.bytes.per.second": "1000.5",
        }
    ).storage_config()
    assert not storage.cleaner_enabled
    assert (storage.cleaner_backoff_ms, storage.cleaner_dedupe_buffer_bytes) == (7, 2_000_000)
    assert (storage.cleaner_slice_bytes, storage.cleaner_io_bytes_per_second) == (2048, 1000.5)


def test_the_cleaners_defaults_are_kafkas() -> None:
    given, default = BrokerConfig({}).storage_config(), StorageConfig()
    assert given.cleaner_enabled is default.cleaner_enabled is True
    assert given.cleaner_backoff_ms == default.cleaner_backoff_ms == 15_000
    assert given.cleaner_dedupe_buffer_bytes == default.cleaner_dedupe_buffer_bytes == 134_217_728
    assert given.cleaner_slice_bytes == default.cleaner_slice_bytes == 524_288 // 2


def test_the_metadata_log_gets_its_snapshot_settings() -> None:
    given = {
        "metadata.log.max.record.bytes.between.snapshots": "1",
        "metadata.log.max.snapshot.interval.ms": "2",
        "metadata.snapshot.min.cleanable.ratio": "0.25",
        "metadata.start.offset.lag.time.max.ms": "4",
        "metadata.max.retention.bytes": "5",
        "metadata.max.retention.ms": "6",
    }
    assert BrokerConfig(given).snapshot_settings() == (1, 2, 0.25, 4, 5, 6)


def test_the_snapshots_defaults_are_kafkas_and_the_kips() -> None:
    assert BrokerConfig({}).snapshot_settings() == SnapshotSettings()


class TestListenerForBrokers:
    TWO = "CLIENTS://:9092,BROKERS://:9093"

    def test_is_the_named_one_if_enabled(self) -> None:
        config = BrokerConfig(
            {
                "listeners": self.TWO,
                "inter.broker.listener.name": "brokers",
                "inter.broker.apis.enable": "true",
            }
        )
        assert {one.name: one.inter_broker for one in config.listeners} == {"CLIENTS": False, "BROKERS": True}

    @pytest.mark.parametrize("given", [{}, {"inter.broker.listener.name": "BROKERS"}])
    def test_is_none_by_default(self, given: dict[str, str]) -> None:
        config = BrokerConfig({"listeners": self.TWO, **given})
        assert not any(one.inter_broker for one in config.listeners)

    @pytest.mark.parametrize("given", [{}, {"inter.broker.listener.name": "OTHERS"}])
    def test_must_be_among_the_listeners(self, given: dict[str, str]) -> None:
        with pytest.raises(ConfigError, match=r"inter\.broker\.listener\.name"):
            BrokerConfig({"listeners": self.TWO, "inter.broker.apis.enable": "true", **given})
