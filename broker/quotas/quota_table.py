"""Finds the quota of a client, and the other clients that share it (KIP-55). Pure.

The most specific quota counts: first that of user and client id together, then of the user, then of the
client id; a name before the default. All client ids of a user share the user's quota, and all users of a
client id share the client id's quota. Each user and each client id has its own share of a default. A client
without an id has no quota by client id.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.coordinator.metadata.client_quotas import CLIENT_ID, USER, QuotaEntity

QuotaShare = tuple[str, str]
"""The clients that share one quota: a user and a client id; one of the two may be "" for any."""


class Quota(NamedTuple):
    """A bound, and the clients that share it."""

    bound: float
    share: QuotaShare


def find_quota(
    quotas: Mapping[QuotaEntity, Mapping[str, float]], key: str, user: str, client_id: str
) -> Quota | None:
    """The client's quota called `key`; None if it has none."""
    for entity, share in _candidates(user, client_id):
        bound = quotas.get(entity, {}).get(key)
        if bound is not None:
            return Quota(bound, share)
    return None


def _candidates(user: str, client_id: str) -> Iterator[tuple[QuotaEntity, QuotaShare]]:
    for user_name in (user, None):
        if client_id:
            for client_name in (client_id, None):
                yield ((CLIENT_ID, client_name), (USER, user_name)), (user, client_id)
        yield ((USER, user_name),), (user, "")
    if client_id:
        for client_name in (client_id, None):
            yield ((CLIENT_ID, client_name),), ("", client_id)
