"""The settings of consumer groups (KIP-848): the broker's own, their lower and upper bounds, and those of one
group, with the names of Apache Kafka 4.3. Pure.
"""

from barnabas.broker.config.bounded_setting import timing_settings
from barnabas.broker.config.kafka_names import ASSIGNOR_CLASSES
from barnabas.broker.config.setting import (
    Check,
    Setting,
    SettingType,
    Value,
    allows,
    at_least,
    each_one_of,
    invalid,
    one_of,
    own_group_setting,
    quoted,
)
from barnabas.coordinator.assignor.consumer_assignors import CONSUMER_ASSIGNORS
from barnabas.coordinator.consumer.settings import MigrationPolicy

_INT, _STRING, _LIST = SettingType.INT, SettingType.STRING, SettingType.LIST
_INT_MAX = 2**31 - 1

CONSUMER_BOUNDED_SETTINGS = timing_settings("consumer")


def _consumer(name: str, default: int, doc: str, check: Check) -> Setting:
    return Setting(f"group.consumer.{name}", _INT, default, doc, check)


@allows(f"one of {quoted(MigrationPolicy)}")
def _check_policy(name: str, value: Value) -> None:
    if str(value).lower() not in list(MigrationPolicy):
        raise invalid(name, value, f"String must be one of (case insensitive): {', '.join(MigrationPolicy)}")


_PROTOCOLS = ("classic", "consumer", "share", "streams")
_check_each_protocol = each_one_of(*_PROTOCOLS)


@allows(f"any of {quoted(_PROTOCOLS)}, always with `classic`")
def _check_protocols(name: str, value: Value) -> None:
    _check_each_protocol(name, value)
    assert isinstance(value, tuple)
    if "classic" not in value:
        raise invalid(name, ",".join(value), "Disabling the 'classic' protocol is not supported")


@allows(f"any of {quoted(CONSUMER_ASSIGNORS)}, at least one")
def _check_assignors(name: str, value: Value) -> None:
    assert isinstance(value, tuple)
    if not value or len(set(value)) < len(value) or not CONSUMER_ASSIGNORS.keys() >= set(value):
        raise invalid(name, ",".join(value), f"Each of these at most once: {', '.join(CONSUMER_ASSIGNORS)}")


REBALANCE_PROTOCOLS = "group.coordinator.rebalance.protocols"

CONSUMER_SETTINGS = (
    Setting(
        REBALANCE_PROTOCOLS,
        _LIST,
        ("classic", "consumer"),
        "Without 'consumer', consumer groups of the new protocol are refused. The others have no effect: "
        "classic groups are always served, share.version decides about share groups, and streams groups are "
        "not supported.",
        _check_protocols,
    ),
    _consumer("max.size", _INT_MAX, "The most members of one consumer group.", at_least(1)),
    Setting(
        "group.consumer.max.groups",
        _INT,
        10_000,
        "The most consumer groups. A further one cannot be joined.",
        at_least(1),
        ours=True,
    ),
    Setting(
        "group.consumer.assignors",
        _LIST,
        tuple(CONSUMER_ASSIGNORS),
        "The assignors that members may choose; the first one if no member does. The class of an assignor in "
        "Kafka counts as its name.",
        _check_assignors,
        aliases=ASSIGNOR_CLASSES,
    ),
    Setting(
        "group.consumer.migration.policy",
        _STRING,
        MigrationPolicy.BIDIRECTIONAL.value,
        "Which groups with members may change the protocol: 'upgrade' those that a consumer of the new "
        "protocol joins, 'downgrade' those that the last such consumer leaves, 'bidirectional' both, "
        "'disabled' none.",
        _check_policy,
    ),
    *(setting for bounded in CONSUMER_BOUNDED_SETTINGS for setting in bounded.broker_settings()),
    _consumer(
        "regex.refresh.interval.ms",
        600_000,
        "How often the topics of regular expressions are looked up again, besides after each new topic.",
        at_least(10_000),
    ),
)

CONSUMER_GROUP_SETTINGS = (
    *(bounded.group_setting() for bounded in CONSUMER_BOUNDED_SETTINGS),
    own_group_setting(
        "individual.commit.order",
        _STRING,
        "none",
        "'partition': a transactional commit of ranges is answered when it reaches the stable offset of each "
        "of its partitions.",
        one_of("none", "partition"),
        guide="decisions/0023-partitions-shared-by-hashes-of-keys.md",
    ),
)
