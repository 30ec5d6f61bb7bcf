"""For how long a client can be told to wait. Pure."""

from __future__ import annotations

import math
from typing import Final

THROTTLE_MS_MAX: Final = 2**31 - 1
"""What the protocol has room for. A quota next to nothing asks for more, and up to for ever."""


def whole_ms(wait_ms: float) -> int:
    """Rounded as Apache Kafka rounds, and no more than can be told; `wait_ms` may be infinite."""
    return math.floor(min(wait_ms, THROTTLE_MS_MAX) + 0.5)
