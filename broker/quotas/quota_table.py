"""Which quota is a client's, and with which other clients it shares that (KIP-55). Pure.

The most special one counts: of user and client id before that of the user before that of the client id; a
name before the default. What belongs to a user alone is shared by all its client ids, what belongs to a
client id alone by all its users; a default is each one's own. A client without an id has none of its own.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.coordinator.metadata.client_quotas import CLIENT_ID, USER, QuotaEntity

QuotaShare = tuple[str, str]
"""Those who use up one quota together: a user and a client id, one of which may be "" for any."""


class Quota(NamedTuple):
    """A bound and who shares it."""

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
