"""OffsetFetch version 10 with the ranges of offsets that were committed individually."""

from dataclasses import dataclass, field

from kio.schema.offset_fetch.v10 import request, response

__all__ = [
    "OffsetFetchRequest",
    "OffsetFetchRequestGroup",
    "OffsetFetchResponse",
    "OffsetFetchResponseGroup",
    "OffsetFetchResponsePartitions",
    "OffsetFetchResponseTopics",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequestGroup(request.OffsetFetchRequestGroup):
    wants_ranges: bool = field(metadata={"kafka_type": "bool", "tag": 10_000}, default=False)
    """Whether the response is to have the ranges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequest(request.OffsetFetchRequest):
    groups: tuple[OffsetFetchRequestGroup, ...]
    """Each group we would like to fetch offsets for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponsePartitions(response.OffsetFetchResponsePartitions):
    ranges: bytes | None = field(metadata={"kafka_type": "bytes", "tag": 10_000}, default=None)
    """The ranges beyond the committed offset, see `packed`; left out if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseTopics(response.OffsetFetchResponseTopics):
    partitions: tuple[OffsetFetchResponsePartitions, ...]
    """The responses per partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseGroup(response.OffsetFetchResponseGroup):
    topics: tuple[OffsetFetchResponseTopics, ...]
    """The responses per topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponse(response.OffsetFetchResponse):
    groups: tuple[OffsetFetchResponseGroup, ...]
    """The responses per group id."""
