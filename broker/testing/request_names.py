"""The groups and topics that a request concerns, for the faults that a test has planned.

Most requests are messages of kio, in which the fields of groups and topics have the same few names in all
APIs; the requests with decoders of their own are read one by one. A request of a fetch session or a share
session names changes only, so the session's partitions count, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, cast
from uuid import UUID

from barnabas.broker.sessions.fetch_sessions import NO_SESSION
from barnabas.protocol.codec import RequestBody
from barnabas.protocol.decode.fetch import FetchBody
from barnabas.protocol.decode.produce import ProduceBody
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.errors import ApiError
from barnabas.share.sessions.session import ShareSessionKey

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker

_TOPIC_ID_VERSION: Final = 13
"""The first version of Fetch that names topics by their ids."""

_GROUP_FIELDS: Final = frozenset(
    {"group_id", "group", "groups", "groups_names", "group_ids", "coordinator_keys", "key"}
)
_TOPIC_FIELDS: Final = frozenset({"topic", "topic_name", "topic_names", "subscribed_topic_names", "topic_id"})
_TOPIC_LISTS: Final = frozenset({"topics", "topic_data", "topic_partitions", "forgotten_topics_data"})
"""Their elements have the topic's name in the field `name`."""


class RequestNames(NamedTuple):
    """The groups and topics of one request, by name."""

    groups: set[str]
    topics: set[str]


def names_in(broker: Broker, api_version: int, request: RequestBody) -> RequestNames:
    """The names in a request, in the shape of its API. Ids of unknown topics are left out."""
    groups: set[str] = set()
    references: set[str | UUID] = set()
    match request:
        case ProduceBody():
            references.update(topic.name or topic.topic_id or "" for topic in request.topics)
        case FetchBody():
            references.update(topic.reference for topic in request.topics)
            references.update(_fetch_session(broker, api_version, request))
        case ShareFetchBody() | ShareAcknowledgeBody():
            groups.add(request.group_id or "")
            references.update(topic.topic_id for topic in request.topics)
            references.update(_share_session(broker, request.group_id, request.member_id))
        case _:
            _collect(request, groups, references, of_topic=False)
    by_id = broker.metadata.image.topics_by_id
    topics = {reference for reference in references if isinstance(reference, str) and reference}
    topics |= {
        by_id[reference].name
        for reference in references
        if isinstance(reference, UUID) and reference in by_id
    }
    return RequestNames(groups, topics)


def _fetch_session(broker: Broker, api_version: int, request: FetchBody) -> Iterator[str | UUID]:
    if request.session_id == NO_SESSION:
        return
    by_id = api_version >= _TOPIC_ID_VERSION
    with suppress(ApiError):
        session = broker.fetch_sessions.find(request.session_id, request.session_epoch, by_id=by_id)
        for reference, _ in session.partitions:
            yield reference


def _share_session(broker: Broker, group_id: str | None, member_id: str | None) -> Iterator[UUID]:
    session = broker.share_sessions.get(ShareSessionKey(group_id or "", member_id or ""))
    if session is not None:
        yield from session.find_topic_ids()


def _collect(message: object, groups: set[str], topics: set[str | UUID], *, of_topic: bool) -> None:
    """Collect the names in a message and in the messages within it; `of_topic` if it stands for a topic."""
    if not is_dataclass(message) or isinstance(message, type):
        return
    for field in fields(message):
        value: object = getattr(message, field.name)
        if field.name in _GROUP_FIELDS:
            groups.update(text for text in _elements(value) if isinstance(text, str))
        if field.name in _TOPIC_FIELDS or field.name in _TOPIC_LISTS or (of_topic and field.name == "name"):
            topics.update(reference for reference in _elements(value) if isinstance(reference, str | UUID))
        for part in _elements(value):
            _collect(part, groups, topics, of_topic=field.name in _TOPIC_LISTS)


def _elements(value: object) -> Iterable[object]:
    return cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
