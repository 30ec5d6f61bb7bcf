"""The groups that read a topic, whether the topic exists or not. Pure."""

from __future__ import annotations

from collections.abc import Collection


class TopicReaders:
    """Group ids by the name of a topic that a member of the group reads."""

    def __init__(self) -> None:
        self._group_ids: dict[str, set[str]] = {}

    def of_topic(self, topic_name: str) -> Collection[str]:
        return self._group_ids.get(topic_name, ())

    def change(self, group_id: str, before: Collection[str], after: Collection[str]) -> None:
        """A group read the topics `before`, and now reads those of `after`."""
        for name in set(after).difference(before):
            self._group_ids.setdefault(name, set()).add(group_id)
        for name in set(before).difference(after):
            group_ids = self._group_ids[name]
            group_ids.discard(group_id)
            if not group_ids:
                del self._group_ids[name]
