"""DeleteGroups version 3 (KIP-1331): adds an error message for a group that was not deleted."""

from dataclasses import dataclass, field
from typing import ClassVar

from kio.schema.delete_groups.v2 import request as request_v2
from kio.schema.delete_groups.v2 import response as response_v2
from kio.static.primitive import i16

__all__ = ["DeletableGroupResult", "DeleteGroupsRequest", "DeleteGroupsResponse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroupsRequest(request_v2.DeleteGroupsRequest):
    __version__: ClassVar[i16] = i16(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletableGroupResult(response_v2.DeletableGroupResult):
    __version__: ClassVar[i16] = i16(3)
    error_message: str | None = field(metadata={"kafka_type": "string"}, default=None)
    """Why the group was not deleted, or null if it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroupsResponse(response_v2.DeleteGroupsResponse):
    __version__: ClassVar[i16] = i16(3)
    results: tuple[DeletableGroupResult, ...]
    """The deletion results."""
