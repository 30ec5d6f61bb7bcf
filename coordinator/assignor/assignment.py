"""The result of an assignor: the partitions that a member is to read."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias
from uuid import UUID

Assignment: TypeAlias = Mapping[UUID, tuple[int, ...]]
"""Topic id -> partitions in ascending order; a topic without partitions is left out."""

EMPTY_ASSIGNMENT: Final[Assignment] = MappingProxyType({})
