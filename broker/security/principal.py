"""The identity of a client, as access rules, quotas and logs name it. Pure."""

from typing import Final, NamedTuple

USER: Final = "User"


class Principal(NamedTuple):
    """A user, or another kind of principal in a rule. Written as in Kafka: `User:alice`."""

    name: str
    kind: str = USER

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal("ANONYMOUS")
"""A client that has not authenticated."""


class NotIdentified(Exception):  # noqa: N818  named after its event
    """A client has proved who it is, and no rule gives it a principal."""
