"""Resolves the regular expressions of a group to topics: all together, in an operation of its own (KIP-848).

All topics' names are matched, also those of internal topics. A result that differs from the last one raises
the group's epoch. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from barnabas.coordinator.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.consumer.interfaces import TopicDirectory
from barnabas.coordinator.consumer.record_factory import group_metadata, regular_expression
from barnabas.coordinator.consumer.regular_expression import RegexError, RegularExpression
from barnabas.coordinator.consumer.subscriptions import ResolvedRegex
from barnabas.coordinator.group.metadata_hash import metadata_hash
from barnabas.protocol.consumer_group_records import ConsumerGroupRecord
from barnabas.runtime.moment import Moment


def resolve(regexes: Collection[str], catalog: TopicDirectory, moment: Moment) -> Mapping[str, ResolvedRegex]:
    """The topics that match each regular expression. An expression that another broker wrote and that is
    invalid here matches none.
    """
    return {
        regex: ResolvedRegex(_matching(regex, catalog.topic_names()), catalog.version(), moment)
        for regex in sorted(regexes)
    }


def _matching(regex: str, names: Collection[str]) -> frozenset[str]:
    try:
        pattern = RegularExpression(regex)
    except RegexError:
        return frozenset()
    return frozenset(filter(pattern.matches, names))


def resolution_records(
    group: ConsumerGroup, resolved: Mapping[str, ResolvedRegex], catalog: TopicDirectory
) -> list[ConsumerGroupRecord]:
    """The records of the result, for the regular expressions that a member still has."""
    subscriptions = group.subscriptions
    news = {regex: found for regex, found in resolved.items() if regex in subscriptions.regexes}
    records = [regular_expression(group.group_id, regex, found) for regex, found in news.items()]
    bump = any(found.topics != _topics_before(group, regex) for regex, found in news.items())
    after = subscriptions._replace(resolved={**subscriptions.resolved, **news})
    topics_hash = metadata_hash(after.topics(), catalog)
    if bump or topics_hash != group.metadata_hash:
        records.append(group_metadata(group.group_id, group.group_epoch + 1, topics_hash))
    return records


def _topics_before(group: ConsumerGroup, regex: str) -> frozenset[str]:
    before = group.subscriptions.resolved.get(regex)
    return frozenset() if before is None else before.topics
