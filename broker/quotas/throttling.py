"""The range and rounding of throttle times. Pure."""

from __future__ import annotations

import math
from typing import Final

THROTTLE_MS_MAX: Final = 2**31 - 1
"""The largest throttle time of the protocol. A tiny quota would require more, even an infinite one."""


def whole_ms(wait_ms: float) -> int:
    """`wait_ms` rounded as in Apache Kafka, and at most `THROTTLE_MS_MAX`; `wait_ms` may be infinite."""
    return math.floor(min(wait_ms, THROTTLE_MS_MAX) + 0.5)
