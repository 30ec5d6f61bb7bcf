"""The operations of classic groups: those of `coordinator.runtime`, with their records."""

from typing import TypeAlias, TypeVar

from barnabas.coordinator.classic.record_factory import ClassicRecord
from barnabas.coordinator.runtime import steps

_T = TypeVar("_T")

Steps: TypeAlias = steps.Steps[ClassicRecord, _T]
