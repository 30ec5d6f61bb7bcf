"""The topics that a consumer group reads, by name and by regular expression (pure).

A regular expression stands for the topics of its last resolution; an unresolved one stands for none. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from barnabas.coordinator.consumer.member import ConsumerMember
from barnabas.runtime.moment import Moment


class ResolvedRegex(NamedTuple):
    """The topics that matched, with the metadata offset and the time of the resolution."""

    topics: frozenset[str]
    version: int
    resolved_at: Moment


class Subscriptions(NamedTuple):
    """The subscriptions of all members together."""

    names: Mapping[str, int] = MappingProxyType({})
    """Topic name -> members that name it."""
    regexes: Mapping[str, int] = MappingProxyType({})
    """Regular expression -> members that use it."""
    resolved: Mapping[str, ResolvedRegex] = MappingProxyType({})

    def changed(self, before: ConsumerMember, after: ConsumerMember) -> Subscriptions:
        """The subscriptions after one member's has changed; resolutions stay."""
        names, regexes = dict(self.names), dict(self.regexes)
        for name in sorted(after.subscribed_topic_names - before.subscribed_topic_names):
            names[name] = names.get(name, 0) + 1
        for name in before.subscribed_topic_names - after.subscribed_topic_names:
            _take_one(names, name)
        if before.subscribed_topic_regex != after.subscribed_topic_regex:
            if after.subscribed_topic_regex:
                regexes[after.subscribed_topic_regex] = regexes.get(after.subscribed_topic_regex, 0) + 1
            if before.subscribed_topic_regex:
                _take_one(regexes, before.subscribed_topic_regex)
        return self._replace(names=names, regexes=regexes)

    def unused(self) -> list[str]:
        """The resolved regular expressions that no member has any more."""
        return sorted(set(self.resolved).difference(self.regexes))

    def without_unused(self) -> Subscriptions:
        unused = self.unused()
        if not unused:
            return self
        return self._replace(
            resolved={regex: found for regex, found in self.resolved.items() if regex not in unused}
        )

    def topics(self) -> frozenset[str]:
        """The names of all topics that members read, whether they exist or not."""
        return frozenset(self.names).union(*(resolved.topics for resolved in self.resolved.values()))

    def has_topic(self, topic_name: str) -> bool:
        """Whether a member reads the topic."""
        return topic_name in self.names or any(
            topic_name in resolved.topics for resolved in self.resolved.values()
        )

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The names of the topics that one member reads."""
        resolved = self.resolved.get(member.subscribed_topic_regex)
        names = member.subscribed_topic_names
        return names if resolved is None else names | resolved.topics

    def is_homogeneous(self, member_count: int) -> bool:
        """Whether all members are known to read the same topics: by name, or by one regular expression."""
        if not self.regexes:
            return all(count == member_count for count in self.names.values())
        return not self.names and next(iter(self.regexes.values())) == member_count


def _take_one(counts: dict[str, int], key: str) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
