"""The specifications of the internal topics: `__consumer_offsets`, `__transaction_state` and
`__share_group_state`.

A topic is created when a client looks up one of its coordinators, with its first record, or by an
administrator, who chooses the number of partitions. After that the number never changes, because it decides
the partition of each key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.image import Topic
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.coordinator.metadata.topic_names import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from barnabas.protocol.errors import ApiError, ErrorCode, without_frames


class InternalTopicSpec(NamedTuple):
    """The settings with which the topic is created, unless an administrator chooses others."""

    name: str
    partition_count: int
    configs: Mapping[str, str | None]


def offsets_topic(config: BrokerConfig) -> InternalTopicSpec:
    """`__consumer_offsets` as Kafka creates it: records of groups are kept at any age."""
    configs: Mapping[str, str | None] = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config.integer("offsets.topic.segment.bytes")),
    }
    return InternalTopicSpec(OFFSETS_TOPIC, config.integer("offsets.topic.num.partitions"), configs)


def share_state_topic(config: BrokerConfig) -> InternalTopicSpec:
    """`__share_group_state` as Kafka creates it: records are deleted when newer ones replace them, not by
    age.
    """
    configs: Mapping[str, str | None] = {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "segment.bytes": str(config.integer("share.coordinator.state.topic.segment.bytes")),
        "retention.ms": "-1",
    }
    partition_count = config.integer("share.coordinator.state.topic.num.partitions")
    return InternalTopicSpec(SHARE_STATE_TOPIC, partition_count, configs)


def transactions_topic(config: BrokerConfig) -> InternalTopicSpec:
    """`__transaction_state` as Kafka creates it: the newest record of each transactional id is kept."""
    configs: Mapping[str, str | None] = {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "segment.bytes": str(config.integer("transaction.state.log.segment.bytes")),
        "unclean.leader.election.enable": "false",
    }
    partition_count = config.integer("transaction.state.log.num.partitions")
    return InternalTopicSpec(TRANSACTION_STATE_TOPIC, partition_count, configs)


async def ensure_topic(controller: Controller, spec: InternalTopicSpec) -> Topic:
    """The topic, created if it does not exist; COORDINATOR_NOT_AVAILABLE if that fails.

    If another request creates it at the same time, it may have another number of partitions.
    """
    topics = controller.image.topics_by_name
    topic = topics.get(spec.name)
    if topic is not None:
        return topic
    reason: ApiError | None
    try:
        new_topic = NewTopic(spec.name, spec.partition_count, configs=spec.configs)
        (creation,) = await controller.create_topics([new_topic])
        reason = creation.error
    except ApiError as error:
        reason = without_frames(error)
    topic = topics.get(spec.name)
    if topic is None:
        message = f"{spec.name} could not be created: {reason}"
        raise ApiError(ErrorCode.coordinator_not_available, message) from reason
    return topic


class InternalTopics:
    """The specifications of all internal topics, by name."""

    def __init__(self, config: BrokerConfig, controller: Controller) -> None:
        self._controller = controller
        specs = (offsets_topic(config), transactions_topic(config), share_state_topic(config))
        self._specs = {spec.name: spec for spec in specs}

    def exists(self, name: str) -> bool:
        return name in self._controller.image.topics_by_name

    async def ensure(self, name: str) -> Topic:
        """See `ensure_topic`."""
        return await ensure_topic(self._controller, self._specs[name])

    def auto_created(self, name: str) -> NewTopic:
        """A new topic of any name, for a client that has sent only the name."""
        spec = self._specs.get(name)
        return NewTopic(name) if spec is None else NewTopic(name, spec.partition_count, configs=spec.configs)

    def completed(self, new_topic: NewTopic) -> NewTopic:
        """A topic that an administrator creates. An internal topic gets the settings that it needs, except
        those that the administrator gives: with the settings of ordinary topics it would lose its records.
        """
        spec = self._specs.get(new_topic.name)
        if spec is None:
            return new_topic
        given = {name: value for name, value in new_topic.configs.items() if value is not None}
        return new_topic._replace(configs={**spec.configs, **given})
