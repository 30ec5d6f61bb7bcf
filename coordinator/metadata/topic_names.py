"""The rules for topic names (Kafka's `Topic`). Pure."""

import re
from uuid import UUID

from barnabas.protocol.identity import TopicIdPartition

OFFSETS_TOPIC = "__consumer_offsets"
SHARE_STATE_TOPIC = "__share_group_state"
TRANSACTION_STATE_TOPIC = "__transaction_state"
METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = UUID(int=1)
METADATA_PARTITION = TopicIdPartition(METADATA_TOPIC_ID, 0)
"""The metadata log. It is not a topic of the image, so consumers do not find it."""

_INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_STATE_TOPIC})
NAME_LENGTH_MAX = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def invalid_topic_name(name: str) -> str | None:
    """The reason why a topic may not have this name, in Kafka's words; None if it may."""
    reason = _reason(name)
    return None if reason is None else f"Topic name is invalid: {reason}"


def _reason(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > NAME_LENGTH_MAX:
        return f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def is_internal(name: str) -> bool:
    """Whether the topic is internal: clients neither write to it nor delete its records."""
    return name in _INTERNAL_TOPICS


def collision_key(name: str) -> str:
    """Equal for two names that differ only in '.' and '_', which metrics cannot tell apart."""
    return name.replace(".", "_")
