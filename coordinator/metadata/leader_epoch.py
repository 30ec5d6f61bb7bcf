"""The leader epoch that a client knows, compared with the partition's own (KIP-320). Pure."""

from typing import Final

from barnabas.protocol.errors import ApiError, ErrorCode

NO_LEADER_EPOCH: Final = -1
"""Sent by a client that does not know the leader epoch."""


def check_leader_epoch(leader_epoch: int, client_epoch: int) -> None:
    """Refuse a client that knows an older or a newer leader epoch than the partition's (KIP-320); raises
    `ApiError`.
    """
    if client_epoch in (NO_LEADER_EPOCH, leader_epoch):
        return
    older = client_epoch < leader_epoch
    raise ApiError(ErrorCode.fenced_leader_epoch if older else ErrorCode.unknown_leader_epoch)
