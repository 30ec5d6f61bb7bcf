"""All share sessions of a broker: opening, finding and ending them (KIP-932, "Share sessions").

ShareFetch and ShareAcknowledge share one epoch per session, which counts each request, so that a lost or
repeated request is noticed. No live session is evicted for another: at the limit, opening one fails. As in
Apache Kafka, membership of the group is not checked. Releasing the records of an ended session is the
caller's part. Pure.
"""

from __future__ import annotations

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.share.sessions.session import (
    FINAL_SHARE_SESSION_EPOCH,
    INITIAL_SHARE_SESSION_EPOCH,
    SHARE_SESSION_EPOCH_MAX,
    SessionPartitions,
    ShareSession,
    ShareSessionKey,
)


class ShareSessionCache:
    """At most `sessions_max` sessions (group.share.max.share.sessions)."""

    def __init__(self, sessions_max: int) -> None:
        self._sessions_max = sessions_max
        self._sessions: dict[ShareSessionKey, ShareSession] = {}
        self.eviction_count = 0
        """Sessions that have ended with their connection."""
        self._opened_last: dict[int, ShareSession] = {}
        """For each connection, the session that was opened on it last; it may have ended since."""

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """Partitions in all sessions; a partition in two sessions counts twice."""
        return sum(len(session) for session in self._sessions.values())

    def get(self, key: ShareSessionKey) -> ShareSession | None:
        """The session of this group and member, or None."""
        return self._sessions.get(key)

    def open(self, key: ShareSessionKey, partitions: SessionPartitions, connection_id: int) -> ShareSession:
        """A new session in place of an earlier one with this key; the earlier one's records stay with the
        member. ApiError: SHARE_SESSION_LIMIT_REACHED, to be answered after MaxWaitMs.
        """
        earlier = self._sessions.get(key)
        if earlier is not None:
            self.remove(earlier)
        if len(self._sessions) >= self._sessions_max:
            raise ApiError(ErrorCode.share_session_limit_reached, "There are too many share sessions.")
        session = ShareSession(key, partitions, connection_id)
        self._sessions[key] = session
        self._opened_last[connection_id] = session
        return session

    def advance(self, key: ShareSessionKey, share_session_epoch: int) -> ShareSession:
        """The session of a request with this epoch, which it uses up. After a request with the final epoch
        the session ends: `remove` it and release its records when that is answered.

        ApiError: SHARE_SESSION_NOT_FOUND, or INVALID_SHARE_SESSION_EPOCH, also for epoch 0, with which only
        a fetch opens a session.
        """
        if share_session_epoch == INITIAL_SHARE_SESSION_EPOCH:
            raise ApiError(ErrorCode.invalid_share_session_epoch, "An acknowledgement opens no session.")
        session = self._sessions.get(key)
        if session is None:
            raise ApiError(ErrorCode.share_session_not_found, "There is no such share session.")
        if share_session_epoch == session.share_session_epoch:
            # It wraps to 1, because 0 would open a new session.
            session.share_session_epoch = (
                share_session_epoch + 1 if share_session_epoch < SHARE_SESSION_EPOCH_MAX else 1
            )
        elif share_session_epoch != FINAL_SHARE_SESSION_EPOCH:
            raise ApiError(ErrorCode.invalid_share_session_epoch, "The share session epoch is out of turn.")
        return session

    def move(self, session: ShareSession, connection_id: int) -> None:
        """The member has another connection: the session ends with that one from now on."""
        if self._opened_last.get(session.connection_id) is session:
            del self._opened_last[session.connection_id]
        session.connection_id = connection_id
        self._opened_last[connection_id] = session

    def remove(self, session: ShareSession) -> bool:
        """Ends a session; returns whether it was still the one of its group and member."""
        if self._sessions.get(session.key) is not session:
            return False
        del self._sessions[session.key]
        if self._opened_last.get(session.connection_id) is session:
            del self._opened_last[session.connection_id]
        return True

    def remove_all(self) -> list[ShareSession]:
        """Ends every session and returns them."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        self._opened_last.clear()
        return sessions

    def connection_lost(self, connection_id: int) -> ShareSession | None:
        """Ends the session that was opened last on a connection, and returns it; earlier ones stay."""
        session = self._opened_last.pop(connection_id, None)
        if session is None or not self.remove(session):
            return None
        self.eviction_count += 1
        return session
