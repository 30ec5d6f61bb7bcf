"""The parts that a production process has for itself and that tests share: logging, and the leaders' class.

Within `surroundings` all log lines go into the trace, and a logged exception is a bug of the broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, MutableMapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import structlog

from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from tests.simulation.trace import Trace

OnBug = Callable[[str], None]


@contextmanager
def surroundings(trace: Trace, on_bug: OnBug, leader_class: type[SharePartitionLeader]) -> Generator[None]:
    """`on_bug` is called with every logged exception."""
    before = structlog.get_config()
    structlog.configure(
        processors=[_Recorder(trace, on_bug)],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        cache_logger_on_first_use=False,
    )
    try:
        with patch("barnabas.share.leader.share_partitions.SharePartitionLeader", leader_class):
            yield
    finally:
        structlog.configure(**before)


class _Recorder:
    """structlog's last processor."""

    def __init__(self, trace: Trace, on_bug: OnBug) -> None:
        self._trace = trace
        self._on_bug = on_bug

    def __call__(self, _logger: Any, method: str, event: MutableMapping[str, Any]) -> str:
        error = event.pop("exc_info", None)
        self._trace.event(f"[{method}] {dict(sorted(event.items()))}")
        if error is not None:
            self._on_bug(f"{event.get('event')}: {error!r}")
        raise structlog.DropEvent
