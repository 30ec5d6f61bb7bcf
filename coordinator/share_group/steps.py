"""The operations of the group coordinator: those of `coordinator.runtime`, with the records of groups."""

from typing import TypeAlias, TypeVar

from barnabas.coordinator.replay import steps
from barnabas.protocol.share_group_records import ShareGroupRecord

_T = TypeVar("_T")

Steps: TypeAlias = steps.Steps[ShareGroupRecord, _T]
