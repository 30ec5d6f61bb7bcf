"""The settings that each kind of resource accepts; errors and texts were recorded from Apache Kafka 4.3.1."""

from pathlib import Path

import pytest

from barnabas.coordinator.metadata.image import ConfigResource, ResourceType
from barnabas.protocol.errors import ApiError, ErrorCode
from tests.broker.config.config_fakes import configured
from tests.broker.network.certificates import PASSWORD, Authority

COPY = "errors.deadletterqueue.copy.record.enable"
RESET = (
    "Invalid value {0} for configuration share.auto.offset.reset: Invalid value `{0}` for configuration "
    "share.auto.offset.reset. The value must be either 'earliest', 'latest' or of the format "
    "'by_duration:<PnDTnHnMn.nS>'."
)
TIERED = (
    "Tiered Storage functionality is disabled in the broker. "
    "Topic cannot be configured with remote log storage."
)
THROTTLED = (
    "Invalid value [q] for configuration leader.replication.throttled.replicas: "
    "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the "
    "following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
)


def out_of_range(name: str, least: int, greatest: int) -> str:
    """The message for the value of a group's setting `name` that is not between the broker's bounds."""
    kind, rest = name.split(".", 1)
    return (
        f"{name} must be in the range {least} to {greatest} inclusive. "
        f"The broker's settings group.{kind}.min.{rest} and group.{kind}.max.{rest} are its bounds."
    )


def refusal(resource_type: int, name: str, configs: dict[str, str]) -> tuple[ErrorCode, str | None] | None:
    try:
        configured().rules.check(ConfigResource(resource_type, name), configs)
    except ApiError as error:
        return error.code, error.message
    return None


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("nope", "1", "Unknown topic config name: nope"),
        ("retention.ms", "x", "Invalid value x for configuration retention.ms: Not a number of type LONG"),
        ("retention.ms", "", "Invalid value  for configuration retention.ms: Not a number of type LONG"),
        (
            "retention.ms",
            "1.5",
            "Invalid value 1.5 for configuration retention.ms: Not a number of type LONG",
        ),
        ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
        ("retention.ms", "+5", None),
        ("segment.ms", " 5000 ", None),
        (
            "cleanup.policy",
            "wipe",
            "Invalid value wipe for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        ("cleanup.policy", "", None),
        (
            "message.timestamp.type",
            "x",
            (
                "Invalid value x for configuration message.timestamp.type: String must be one of: "
                "CreateTime, LogAppendTime"
            ),
        ),
        (
            "preallocate",
            "maybe",
            "Invalid value maybe for configuration preallocate: Expected value to be either true or false",
        ),
        (
            "min.cleanable.dirty.ratio",
            "2",
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            "segment.bytes",
            "99999999999",
            "Invalid value 99999999999 for configuration segment.bytes: Not a number of type INT",
        ),
        (
            "segment.bytes",
            "100",
            "Invalid value 100 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            "compression.type",
            "brotli",
            (
                "Invalid value brotli for configuration compression.type: String must be one of: "
                "uncompressed, zstd, lz4, snappy, gzip, producer"
            ),
        ),
        (
            "compression.gzip.level",
            "77",
            (
                "Invalid value 77 for configuration compression.gzip.level: Value must be between 1 and 9"
                " or equal to -1"
            ),
        ),
        (
            "compression.zstd.level",
            "99",
            "Invalid value 99 for configuration compression.zstd.level: Value must be no more than 22",
        ),
        (
            "compression.lz4.level",
            "99",
            "Invalid value 99 for configuration compression.lz4.level: Value must be no more than 17",
        ),
        (
            "local.retention.ms",
            "-3",
            "Invalid value -3 for configuration local.retention.ms: Value must be at least -2",
        ),
        ("remote.storage.enable", "true", TIERED),
        ("leader.replication.throttled.replicas", "q", THROTTLED),
        ("leader.replication.throttled.replicas", "0:1,1:1", None),
        ("leader.replication.throttled.replicas", "*", None),
    ],
)
def test_a_topics_setting_is_accepted_or_refused_with_the_reason(
    name: str, value: str, message: str | None
) -> None:
    expected = None if message is None else (ErrorCode.invalid_config, message)
    assert refusal(ResourceType.TOPIC, "t", {name: value}) == expected


def test_a_topics_compaction_lags_must_fit_each_other() -> None:
    assert refusal(
        ResourceType.TOPIC, "t", {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}
    ) == (
        ErrorCode.invalid_config,
        "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("errors.deadletterqueue.topic.name", "dlq.x", None),
        (
            "errors.deadletterqueue.topic.name",
            "__x",
            "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'",
        ),
        (
            COPY,
            "yes",
            f"Invalid value yes for configuration {COPY}: Expected value to be either true or false",
        ),
        ("share.auto.offset.reset", "by_duration:PT1H", None),
        ("share.auto.offset.reset", "Earliest", RESET.format("Earliest")),
        ("share.auto.offset.reset", "by_duration:-PT1H", RESET.format("by_duration:-PT1H")),
        ("share.auto.offset.reset", "by_duration", RESET.format("by_duration")),
        (
            "share.isolation.level",
            "READ_COMMITTED",
            (
                "Invalid value READ_COMMITTED for configuration share.isolation.level: "
                "String must be one of: read_committed, read_uncommitted"
            ),
        ),
        ("share.renew.acknowledge.enable", "TRUE", None),
        (
            "share.record.lock.duration.ms",
            "999",
            "Invalid value 999 for configuration share.record.lock.duration.ms: Value must be at least 1000",
        ),
        (
            "share.record.lock.duration.ms",
            "1000",
            out_of_range("share.record.lock.duration.ms", 15000, 60000),
        ),
        (
            "share.record.lock.duration.ms",
            "60001",
            out_of_range("share.record.lock.duration.ms", 15000, 60000),
        ),
        (
            "share.delivery.count.limit",
            "11",
            out_of_range("share.delivery.count.limit", 2, 10),
        ),
        (
            "share.partition.max.record.locks",
            "99",
            "Invalid value 99 for configuration share.partition.max.record.locks: Value must be at least 100",
        ),
        (
            "share.session.timeout.ms",
            "x",
            "Invalid value x for configuration share.session.timeout.ms: Not a number of type INT",
        ),
        (
            "share.heartbeat.interval.ms",
            "0",
            "Invalid value 0 for configuration share.heartbeat.interval.ms: Value must be at least 1",
        ),
        (
            "share.assignment.interval.ms",
            "15001",
            out_of_range("share.assignment.interval.ms", 0, 15000),
        ),
        (
            "share.auto.offset.rest",
            "earliest",
            "Unknown group config name: share.auto.offset.rest. Is share.auto.offset.reset meant?",
        ),
    ],
)
def test_a_groups_setting_is_accepted_or_refused_with_the_reason(
    name: str, value: str, message: str | None
) -> None:
    expected = None if message is None else (ErrorCode.invalid_config, message)
    assert refusal(ResourceType.GROUP, "g", {name: value}) == expected


def test_a_group_may_lock_far_more_records_than_in_kafka_if_the_broker_allows_it() -> None:
    asked = {"share.partition.max.record.locks": "500000"}
    expected = out_of_range("share.partition.max.record.locks", 100, 4000)
    assert refusal(ResourceType.GROUP, "g", asked) == (ErrorCode.invalid_config, expected)
    parts = configured(group__share__max__partition__max__record__locks="500000")
    parts.rules.check(ConfigResource(ResourceType.GROUP, "g"), asked)


def test_a_groups_session_must_outlast_its_heartbeat() -> None:
    parts = configured(group__share__min__session__timeout__ms="1")
    with pytest.raises(ApiError) as raised:
        parts.rules.check(ConfigResource(ResourceType.GROUP, "g"), {"share.session.timeout.ms": "5000"})
    assert raised.value.message == (
        "share.session.timeout.ms must be greater than share.heartbeat.interval.ms (5000)"
    )


@pytest.mark.parametrize(
    ("broker", "configs", "code", "message"),
    [
        ("1", {"log.retention.ms": "700000000"}, None, None),
        ("", {"message.max.bytes": "2000000", "group.share.assignment.interval.ms": "2000"}, None, None),
        (
            "1",
            {"num.partitions": "3"},
            ErrorCode.invalid_request,
            "Cannot update these configs dynamically: [num.partitions]",
        ),
        (
            "",
            {"log.roll.ms": "0"},
            ErrorCode.invalid_request,
            "Invalid value 0 for configuration log.roll.ms: Value must be at least 1",
        ),
        (
            "",
            {"log.roll.jitter.ms": "-1"},
            ErrorCode.invalid_request,
            "Invalid value -1 for configuration log.roll.jitter.ms: Value must be at least 0",
        ),
        (
            "",
            {"log.retention.ms": "0"},
            ErrorCode.invalid_request,
            (
                "Invalid value 0 for configuration log.retention.ms: Value must be at least 1, or below 0 "
                "for ever"
            ),
        ),
        (
            "1",
            {"log.retention.ms": "x"},
            ErrorCode.invalid_request,
            "Invalid value x for configuration log.retention.ms: Not a number of type LONG",
        ),
        (
            "1",
            {"message.max.bytes": "-1"},
            ErrorCode.invalid_request,
            "Invalid value -1 for configuration message.max.bytes: Value must be at least 0",
        ),
        (
            "",
            {"group.share.assignment.interval.ms": "20000"},
            ErrorCode.invalid_request,
            (
                "group.share.assignment.interval.ms must be less than or equal to "
                "group.share.max.assignment.interval.ms (15000)"
            ),
        ),
        ("2", {}, ErrorCode.invalid_request, "Unexpected broker id, expected 1, but received 2"),
        ("x", {}, ErrorCode.invalid_request, "Node id must be an integer, but it is: x"),
        ("1", {"nope": "3"}, ErrorCode.invalid_config, "Unknown broker config name: nope"),
        (
            "1",
            {"num.io.threads": "3"},
            ErrorCode.invalid_config,
            "This broker does not use the setting num.io.threads",
        ),
    ],
)
def test_a_brokers_settings_are_accepted_or_refused_with_the_reason(
    broker: str, configs: dict[str, str], code: ErrorCode | None, message: str | None
) -> None:
    expected = None if code is None else (code, message)
    assert refusal(ResourceType.BROKER, broker, configs) == expected


@pytest.mark.parametrize(
    ("resource_type", "name", "code", "message"),
    [
        (ResourceType.TOPIC, "", ErrorCode.invalid_request, "Default topic resources are not allowed."),
        (
            ResourceType.TOPIC,
            ".",
            ErrorCode.invalid_topic_exception,
            "Topic name is invalid: '.' is not allowed",
        ),
        (ResourceType.GROUP, "", ErrorCode.invalid_request, "Default group resources are not allowed."),
        (ResourceType.CLIENT_METRICS, "x", ErrorCode.invalid_request, "Unknown resource type 16"),
    ],
)
def test_a_wrong_name_of_a_resource_is_refused(
    resource_type: int, name: str, code: ErrorCode, message: str
) -> None:
    assert refusal(resource_type, name, {}) == (code, message)


@pytest.mark.parametrize(
    ("resource_type", "name", "default"),
    [
        (ResourceType.TOPIC, "cleanup.policy", "delete"),
        (ResourceType.TOPIC, "follower.replication.throttled.replicas", ""),
        (ResourceType.TOPIC, "retention.ms", None),
        (ResourceType.TOPIC, "nope", None),
        (ResourceType.BROKER, "log.cleanup.policy", "delete"),
        (ResourceType.GROUP, "share.auto.offset.reset", None),
        (ResourceType.CLIENT_METRICS, "match", None),
    ],
)
def test_only_list_settings_have_a_list_default(resource_type: int, name: str, default: str | None) -> None:
    assert configured().rules.list_default(resource_type, name) == default


class TestTls:
    """A listener's keys are checked before a change of them is accepted."""

    def refusal(self, authority: Authority, listener: str, name: str = "1", **changes: str) -> str | None:
        server = authority.write_pem(authority.issue())
        rules = configured(
            listeners="PLAINTEXT://127.0.0.1:1,SSL://127.0.0.1:2",
            ssl__keystore__type="PEM",
            ssl__keystore__location=str(server),
        ).rules
        prefix = f"listener.name.{listener}." if listener else ""
        configs = {prefix + key.replace("__", "."): value for key, value in changes.items()}
        try:
            rules.check(ConfigResource(ResourceType.BROKER, name), configs)
        except ApiError as error:
            assert error.code is ErrorCode.invalid_request
            return error.message
        return None

    def test_a_usable_key_store_is_accepted(self, tmp_path: Path) -> None:
        authority = Authority(tmp_path)
        new = str(authority.write_pkcs12(authority.issue()))
        changes = {"ssl__keystore__type": "PKCS12", "ssl__keystore__password": PASSWORD}
        assert self.refusal(authority, "ssl", ssl__keystore__location=new, **changes) is None

    @pytest.mark.parametrize(
        ("listener", "resource", "changes", "message"),
        [
            (
                "ssl",
                "1",
                {"ssl__keystore__location": "/nowhere"},
                "Listener SSL: ssl.keystore.location: /nowhere cannot be read: No such file or directory",
            ),
            (
                "",
                "1",
                {"ssl__keystore__location": "/nowhere"},
                (
                    "These security configs can be dynamically updated only per-listener using the listener "
                    "prefix: [ssl.keystore.location]"
                ),
            ),
            (
                "ssl",
                "",
                {"ssl__keystore__location": "/nowhere"},
                (
                    "Cannot update these configs at default cluster level: "
                    "[listener.name.ssl.ssl.keystore.location]"
                ),
            ),
            (
                "ssl",
                "1",
                {"ssl__client__auth": "required"},
                "Cannot update these configs dynamically: [listener.name.ssl.ssl.client.auth]",
            ),
        ],
    )
    def test_another_change_is_refused_with_the_reason(
        self, tmp_path: Path, listener: str, resource: str, changes: dict[str, str], message: str
    ) -> None:
        assert self.refusal(Authority(tmp_path), listener, resource, **changes) == message
