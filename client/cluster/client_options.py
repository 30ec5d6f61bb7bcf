"""The options of every client, with their defaults and limits. Durations are in milliseconds.

`ClientOptions` names the keyword arguments for type checkers; `ClientSettings` holds their values for the
parts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypedDict

from barnabas.client.errors import MisuseError
from barnabas.client.network.security import PLAINTEXT, Security
from barnabas.client.waiting.backoff import Backoff
from barnabas.protocol.nearest_name import nearest_name


class ClientOptions(TypedDict, total=False):
    """The options of every client; `ClientSettings` documents each."""

    client_id: str
    connect_timeout_ms: int
    request_timeout_ms: int
    close_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    metadata_max_age_ms: int
    security: Security
    random: Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class ClientSettings:
    """The options of every client. Raises `MisuseError` for invalid values."""

    client_id: str = "barnabas"
    connect_timeout_ms: int = 10_000
    """How long a starting client tries to reach a broker."""
    request_timeout_ms: int = 30_000
    """A request without an answer for this time, plus the wait that it asked for, ends its connection."""
    close_timeout_ms: int = 5_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    security: Security = PLAINTEXT
    """Encryption and authentication, from `parse_security`."""
    random: Callable[[], float] = random.random
    """The source of the jitter in pauses."""

    def __post_init__(self) -> None:
        self._require_at_least(1, "request_timeout_ms", "retry_backoff_ms", "connect_timeout_ms")
        self._require(
            self.retry_backoff_max_ms >= self.retry_backoff_ms,
            "retry_backoff_max_ms",
            f"at least {self.retry_backoff_ms}, the value of retry_backoff_ms",
        )

    def backoff(self) -> Backoff:
        """Growing pauses between tries."""
        return Backoff(self.retry_backoff_ms, self.retry_backoff_max_ms, self.random)

    def _require(self, holds: bool, name: str, expected: str) -> None:
        if not holds:
            raise MisuseError(f"The option {name} is {getattr(self, name)!r}; it must be {expected}.")

    def _require_at_least(self, least: int, *names: str) -> None:
        for name in names:
            self._require(getattr(self, name) >= least, name, f"at least {least}")

    def _require_choice(self, name: str, choices: Iterable[str]) -> None:
        self._require(getattr(self, name) in choices, name, " or ".join(choices))


def check_option_names(options: Mapping[str, object], known: Mapping[str, object]) -> None:
    """Raises `MisuseError` for an unknown name, which suggests the nearest known name."""
    for name in options:
        if name not in known:
            nearest = nearest_name(name, known)
            hint = f"; did you mean {nearest}?" if nearest else "."
            raise MisuseError(f"There is no option {name}{hint}")
