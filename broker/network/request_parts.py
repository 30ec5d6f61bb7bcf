"""Cuts large requests into parts, and joins the answers to the parts.

A request with independent entries may be handled as several smaller ones, one after the other. For each such
API this file has the names of the arrays of entries and of results, and the number of entries in a part.
Entries with the same key stay in one part, because a handler refuses duplicates. Results are in the order of
the parts. The functions here do not use the broker's state, so they may run in a thread.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
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
    """The name of the array in a request."""
    response: str
    """The name of the array in an answer, with a result for each entry."""
    part_size: int
    """The number of entries that are handled in some 10 milliseconds."""
    key: Callable[[Any], Hashable] = _identity
    inner: str | None = None
    """The name of the array in an entry and in its result, if `part_size` counts its items."""
    may_be_cut: Callable[[Sequence[Any], int], bool] = _always
    """Whether a request with these entries may be cut; the number is `num.partitions`."""


def _collision_key(topic: Any) -> Hashable:
    return collision_key(topic.name)


def _is_within_limit(topics: Sequence[Any], default_partition_count: int) -> bool:
    """False for a request for too many partitions, which is refused as a whole."""
    counts = (len(topic.assignments) or topic.num_partitions for topic in topics)
    asked = sum(default_partition_count if count == DEFAULT else max(count, 0) for count in counts)
    return asked <= REQUEST_PARTITIONS_MAX


def _are_of_one_kind(topics: Sequence[Any], _default_partition_count: int) -> bool:
    """False for a request with names and ids, because a handler refuses both for the same topic."""
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
"""By API and the name of the array in the request, which differs between versions of some APIs."""


def cut_request(api_key: int, request: EntityT, default_partition_count: int) -> Sequence[EntityT]:
    """The parts of a request, each a request of its API; the request alone if it is not cut.

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
    """One answer from the answers to the parts; `request` is any of the parts.

    If an answer has an error of the whole request, it is the result. Else the result has the longest throttle
    time.
    """
    entries = _entries_of(api_key, request)
    if entries is None or len(answers) == 1:
        return answers[0]
    failed = next((answer for answer in answers if getattr(answer, "error_code", None)), None)
    if failed is not None:
        return failed
    results: Iterable[Any] = (result for answer in answers for result in getattr(answer, entries.response))
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
    """The entry, or several entries with some of its inner entries each."""
    name = entries.inner
    if name is None:
        return [entry]
    inner, size = getattr(entry, name), entries.part_size
    if len(inner) <= size:
        return [entry]
    cuts = range(0, len(inner), size)
    return [dataclasses.replace(entry, **{name: inner[start : start + size]}) for start in cuts]


def _joined(results: Iterable[Any], inner: str) -> Iterator[Any]:
    """The results, with neighbours of the same topic joined."""
    for _, same in groupby(results, partial(_fields_except, inner)):
        first, *others = same
        if others:
            pieces = [first, *others]
            first = dataclasses.replace(
                first, **{inner: sum((getattr(piece, inner) for piece in pieces), ())}
            )
        yield first


def _fields_except(name: str, result: Any) -> tuple[Any, ...]:
    return tuple(getattr(result, field.name) for field in dataclasses.fields(result) if field.name != name)
