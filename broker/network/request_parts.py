"""Large requests cut into parts, and the answers to the parts put together.

A request whose entries are independent of each other may be handled as several smaller ones, one after the
other. Here stands for each such API where its entries are, where the answer has their results, and how many
entries make a part. Entries of the same key stay in one part, since a handler refuses what is named twice.
Results come in the order of the parts. Nothing here touches the state of the broker: a thread may do it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

from kio.static.protocol import Entity

from barnabas.broker.network.handler import NO_RESPONSE, Response
from barnabas.coordinator.metadata.topic_decisions import DEFAULT, REQUEST_PARTITIONS_MAX
from barnabas.coordinator.metadata.topic_names import collision_key
from barnabas.protocol.api import ApiKey
from barnabas.runtime.response_budget import EncodedBody

EntityT = TypeVar("EntityT", bound=Entity)


def _identity(entry: Hashable) -> Hashable:
    return entry


def _always(_entries: Sequence[Any], _default_partition_count: int) -> bool:
    return True


class Entries(NamedTuple):
    """The entries of an API's requests."""

    request: str
    """The array of a request."""
    response: str
    """The array of an answer, with a result for each entry."""
    part_size: int
    """Entries that are handled in some 10 milliseconds."""
    key: Callable[[Any], Hashable] = _identity
    inner: str | None = None
    """The array within an entry and within its result, where that is what is counted."""
    may_be_cut: Callable[[Sequence[Any], int], bool] = _always
    """Whether these entries, all of a request, are independent; the number is `num.partitions`."""


def _collision_key(topic: Any) -> Hashable:
    return collision_key(topic.name)


def _is_within_limit(topics: Sequence[Any], default_partition_count: int) -> bool:
    """A request for too many partitions is refused as a whole."""
    counts = (len(topic.assignments) or topic.num_partitions for topic in topics)
    asked = sum(default_partition_count if count == DEFAULT else max(count, 0) for count in counts)
    return asked <= REQUEST_PARTITIONS_MAX


def _are_of_one_kind(topics: Sequence[Any], _default_partition_count: int) -> bool:
    """A name and an id may mean the same topic, which is refused."""
    return len({topic.name is None for topic in topics}) == 1


def _name(topic: Any) -> Hashable:
    name: Hashable = topic.name
    return name


def _resource(resource: Any) -> Hashable:
    return int(resource.resource_type), resource.resource_name


def _topic_name(topic: Any) -> Hashable:
    name: Hashable = topic.topic
    return name


def _topic(topic: Any) -> Hashable:
    reference: Hashable = topic.name if hasattr(topic, "name") else topic.topic_id
    return reference


_COMMITTED: Final = Entries("topics", "topics", 200, _topic, inner="partitions")
_ALTERED: Final = Entries("resources", "responses", 50, _resource)
_DESCRIBED: Final = Entries("group_ids", "groups", 300)
_ENTRIES: Final[Mapping[tuple[int, str], Entries]] = {
    (ApiKey.CREATE_TOPICS, "topics"): Entries(
        "topics", "topics", 50, _collision_key, may_be_cut=_is_within_limit
    ),
    (ApiKey.CREATE_PARTITIONS, "topics"): Entries("topics", "results", 50, _name),
    (ApiKey.DELETE_TOPICS, "topic_names"): Entries("topic_names", "responses", 100),
    (ApiKey.DELETE_TOPICS, "topics"): Entries("topics", "responses", 100, may_be_cut=_are_of_one_kind),
    (ApiKey.ALTER_CONFIGS, "resources"): _ALTERED,
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "resources"): _ALTERED,
    (ApiKey.DELETE_GROUPS, "groups_names"): Entries("groups_names", "results", 100),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, "group_ids"): _DESCRIBED,
    (ApiKey.SHARE_GROUP_DESCRIBE, "group_ids"): _DESCRIBED,
    (ApiKey.OFFSET_COMMIT, "topics"): _COMMITTED,
    (ApiKey.TXN_OFFSET_COMMIT, "topics"): _COMMITTED,
    (ApiKey.OFFSET_DELETE, "topics"): _COMMITTED,
    (ApiKey.DELETE_RECORDS, "topics"): Entries("topics", "topics", 100, _topic, inner="partitions"),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, "topics"): Entries(
        "topics", "topics", 200, _topic_name, inner="partitions"
    ),
}
"""By API and the array's name, which some APIs have changed."""


def cut_request(api_key: int, request: EntityT, default_partition_count: int) -> Sequence[EntityT]:
    """The parts of a request, in the shape of its API; the request alone if it is not cut.

    `default_partition_count` is `num.partitions`.
    """
    entries = _entries_of(api_key, request)
    if entries is None:
        return [request]
    whole = getattr(request, entries.request)
    if not whole or not entries.may_be_cut(whole, default_partition_count):
        return [request]
    parts = [dataclasses.replace(request, **{entries.request: part}) for part in _parts(entries, whole)]
    return parts if len(parts) > 1 else [request]


def join_answers(api_key: int, request: object, answers: Sequence[Response]) -> Response:
    """One answer made of those to the parts of a request, of which `request` is one.

    An error of the whole, and the longest throttle time, are taken over.
    """
    entries = _entries_of(api_key, request)
    if entries is None or len(answers) == 1:
        return answers[0]
    failed = next((one for one in answers if getattr(one, "error_code", None)), None)
    if failed is not None:
        return failed
    results: Iterable[Any] = (one for answer in answers for one in getattr(answer, entries.response))
    if entries.inner is not None:
        results = _joined(results, entries.inner)
    last = answers[-1]
    assert last is not NO_RESPONSE
    assert not isinstance(last, EncodedBody), "a part of a large request was answered in bytes"
    throttle_time = max(map(attrgetter("throttle_time"), answers))
    return dataclasses.replace(last, **{entries.response: tuple(results), "throttle_time": throttle_time})


def _entries_of(api_key: int, request: object) -> Entries | None:
    for (key, name), entries in _ENTRIES.items():
        if key == api_key and hasattr(request, name):
            return entries
    return None


def _parts(entries: Entries, whole: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    by_key: dict[Hashable, list[Any]] = {}
    for entry in whole:
        by_key.setdefault(entries.key(entry), []).append(entry)
    part: list[Any] = []
    size = 0
    for same in by_key.values():
        for entry in same:
            for piece in _pieces(entry, entries):
                part.append(piece)
                size += 1 if entries.inner is None else max(1, len(getattr(piece, entries.inner)))
                if size >= entries.part_size and entries.inner is not None:
                    yield tuple(part)
                    part, size = [], 0
        if size >= entries.part_size:
            yield tuple(part)
            part, size = [], 0
    if part:
        yield tuple(part)


def _pieces(entry: Any, entries: Entries) -> Iterable[Any]:
    """The entry, or several with some of its inner entries each."""
    name = entries.inner
    if name is None:
        return [entry]
    inner, size = getattr(entry, name), entries.part_size
    if len(inner) <= size:
        return [entry]
    cuts = range(0, len(inner), size)
    return [dataclasses.replace(entry, **{name: inner[start : start + size]}) for start in cuts]


def _joined(results: Iterable[Any], inner: str) -> Iterator[Any]:
    """Neighbours of the same topic made one."""

    def reference(result: Any) -> tuple[Any, ...]:
        return tuple(
            getattr(result, field.name) for field in dataclasses.fields(result) if field.name != inner
        )

    for _, same in groupby(results, reference):
        first, *others = same
        if others:
            pieces = [first, *others]
            first = dataclasses.replace(first, **{inner: sum((getattr(one, inner) for one in pieces), ())})
        yield first
