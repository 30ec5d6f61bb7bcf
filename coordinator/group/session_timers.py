"""When each member's session ends: a heap of deadlines in which restarting a session costs one dictionary
write.

A restart leaves the heap as it is; an entry that comes up before its session's real deadline is put back.
Sessions are soft: they are not written anywhere and begin anew when a group is loaded. Pure: times come in as
monotonic milliseconds.
"""

from heapq import heappop, heappush
from itertools import count


class _Session:
    __slots__ = ("deadline_ms", "group_id", "member_id", "order", "wake_ms")

    def __init__(self, group_id: str, member_id: str, deadline_ms: int, order: int) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.deadline_ms = deadline_ms
        self.wake_ms = deadline_ms
        """When the session's one live heap entry comes up; entries with another time are stale."""
        self.order = order


class SessionTimers:
    """Sessions by group and member."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, str], _Session] = {}
        self._heap: list[tuple[int, int, _Session]] = []
        self._order = count()

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._sessions

    def restart(self, group_id: str, member_id: str, deadline_ms: int) -> None:
        """Begin the member's session, or move its end."""
        session = self._sessions.get((group_id, member_id))
        if session is None:
            session = _Session(group_id, member_id, deadline_ms, next(self._order))
            self._sessions[group_id, member_id] = session
            heappush(self._heap, (deadline_ms, session.order, session))
            return
        session.deadline_ms = deadline_ms
        if deadline_ms < session.wake_ms:
            # Only after the group's timeout was lowered.
            self._wake_at(session, deadline_ms)

    def cancel(self, group_id: str, member_id: str) -> None:
        """Forget the session, if there is one."""
        self._sessions.pop((group_id, member_id), None)

    def next_deadline_ms(self) -> int | None:
        """When to call `expire` next; it may be earlier than any session's end."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def expire(self, now_ms: int) -> list[tuple[str, str]]:
        """Forget the sessions that have ended, and answer their (group id, member id), earliest first."""
        ended: list[tuple[str, str]] = []
        while self._heap and self._heap[0][0] <= now_ms:
            wake_ms, _, session = heappop(self._heap)
            if not self._is_live(session, wake_ms):
                continue
            if session.deadline_ms > now_ms:
                self._wake_at(session, session.deadline_ms)
            else:
                key = (session.group_id, session.member_id)
                del self._sessions[key]
                ended.append(key)
        return ended

    def _wake_at(self, session: _Session, wake_ms: int) -> None:
        session.wake_ms = wake_ms
        heappush(self._heap, (wake_ms, session.order, session))

    def _is_live(self, session: _Session, wake_ms: int) -> bool:
        current = self._sessions.get((session.group_id, session.member_id))
        return current is session and session.wake_ms == wake_ms

    def _drop_stale(self) -> None:
        while self._heap and not self._is_live(self._heap[0][2], self._heap[0][0]):
            heappop(self._heap)
