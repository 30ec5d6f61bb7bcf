"""The settings of dead letters: those of Apache Kafka 4.4 (KIP-1191), and two of our own. Pure.

One default differs from Kafka's: a missing topic is created, so that the name of the topic is enough for dead
letters that work.
"""

from barnabas.broker.config.errors import InvalidValueError
from barnabas.broker.config.setting import (
    Scope,
    Setting,
    SettingType,
    Value,
    allows,
    invalid,
    one_of,
    own_group_setting,
)
from barnabas.coordinator.metadata.topic_names import invalid_topic_name

TOPIC_NAME = "errors.deadletterqueue.topic.name"
COPIES_RECORDS = "errors.deadletterqueue.copy.record.enable"
COPIES_HEADERS = "share.dead.letter.copy.headers.enable"
ON_FAILURE = "share.dead.letter.on.failure"
CREATES_TOPICS = "errors.deadletterqueue.auto.create.topics.enable"
NAME_PREFIX = "errors.deadletterqueue.topic.name.prefix"
ENABLE = "errors.deadletterqueue.group.enable"

HOLD, ARCHIVE = "hold", "archive"

_BOOLEAN, _STRING = SettingType.BOOLEAN, SettingType.STRING
_GUIDE = "dead-letters.md"


@allows("a name of a topic that does not begin with `__`, or empty")
def _topic_name(name: str, value: Value) -> None:
    topic_name = str(value)
    if topic_name.startswith("__"):
        raise InvalidValueError(f"{name}: DLQ topic name must not start with '__'")
    reason = invalid_topic_name(topic_name) if topic_name else None
    if reason is not None:
        raise invalid(name, topic_name, reason)


DEAD_LETTER_SETTINGS = (
    Setting(
        CREATES_TOPICS,
        _BOOLEAN,
        True,
        "Whether a topic for dead letters is created when a group's first letter is due.",
        dynamic=True,
    ),
    Setting(
        NAME_PREFIX,
        _STRING,
        "dlq.",
        "The beginning of the name of each topic for dead letters. Empty: any name.",
        dynamic=True,
    ),
)

DEAD_LETTER_TOPIC_SETTINGS = (
    Setting(
        ENABLE,
        _BOOLEAN,
        False,
        "Whether share groups may write dead letters to the topic.",
        scope=Scope.TOPIC,
        dynamic=True,
    ),
)


DEAD_LETTER_GROUP_SETTINGS = (
    Setting(
        TOPIC_NAME,
        _STRING,
        "",
        "The topic for the dead letters of the group: records that a member rejects, or that reach the "
        "delivery limit. Empty: no dead letters.",
        _topic_name,
        scope=Scope.GROUP,
        dynamic=True,
        guide=_GUIDE,
    ),
    Setting(
        COPIES_RECORDS,
        _BOOLEAN,
        False,
        "Whether dead letters have the key and value of the record.",
        scope=Scope.GROUP,
        dynamic=True,
        guide=_GUIDE,
    ),
    own_group_setting(
        COPIES_HEADERS,
        _BOOLEAN,
        False,
        "Whether dead letters that copy the record have its headers, too.",
        guide=_GUIDE,
    ),
    own_group_setting(
        ON_FAILURE,
        _STRING,
        HOLD,
        "A record whose dead letter cannot be written waits for it ('hold'), or is archived without it "
        "('archive').",
        one_of(HOLD, ARCHIVE),
        guide=_GUIDE,
    ),
)
