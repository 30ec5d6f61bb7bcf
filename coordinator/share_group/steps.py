"""The operations of the group coordinator: those of `coordinator.runtime`, with the records of groups."""

from typing import TypeAlias, TypeVar

from barnabas.coordinator.runtime import steps
from barnabas.coordinator.share_group.record_factory import GroupRecord

_T = TypeVar("_T")

Steps: TypeAlias = steps.Steps[GroupRecord, _T]
