"""The last answers of each share session, for clients that repeat a request after a lost connection.

A client whose connection is lost does not know whether the broker has carried out its request. It sends the
request again over another connection, with the same epoch and the same content, and gets the first answer
again, without a second effect: the results of its acknowledgements, and the ranges that it acquired, as far
as it still holds them. Their records are not kept; they are read again.

An answer is kept beyond the end of its session, because the lost connection ends the session. Then it has
only the results, since the locks end with the session. See decision 26. There is no clock here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from barnabas.runtime.completion import Completion
from barnabas.share.sessions.acknowledgements import Results
from barnabas.share.sessions.session import SessionPartition, ShareSession, ShareSessionKey

ANSWERS_OF_SESSION_MAX: Final = 2
"""A client has at most a fetch and an acknowledgement outstanding."""

KEPT_BYTES_MAX: Final = 8 * 1024 * 1024
"""The bytes of all requests whose answers are kept, with `RANGE_BYTES` for each acquired range. The results
take up to ten times the bytes of a request in memory. An answer beyond the limit is not kept."""

RANGE_BYTES: Final = 128
"""The memory for an acquired range."""

ENDED_SESSIONS_MAX: Final = 1_000
"""The most ended sessions whose answers are kept; beyond it the session that ended first is forgotten."""

KEPT_AFTER_END_MS: Final = 60_000
"""How long the answers of an ended session are kept: twice the usual timeout of a client's request."""

Content = tuple[str, bytes, bool]
"""The parts of a request that must be equal when it is repeated: the name of the API, the topics as they were
sent, and whether it renews locks. Without topics it is too large, and its answer is not kept."""

Acquired = Sequence[tuple[int, int, int]]
"""First offset, last offset (inclusive) and delivery count of each range."""

_NONE_ACQUIRED: Final[Mapping[SessionPartition, Acquired]] = {}


class KeptAnswer:
    """The parts of an answer that are needed to give it again."""

    __slots__ = (
        "acquired",
        "content",
        "is_kept",
        "kept_bytes",
        "results",
        "session",
        "share_session_epoch",
    )

    def __init__(
        self,
        session: ShareSession,
        share_session_epoch: int,
        content: Content,
        results: Completion[Results],
    ) -> None:
        """`results` may come later."""
        self.session = session
        self.share_session_epoch = share_session_epoch
        self.content = content
        self.results = results
        self.acquired = _NONE_ACQUIRED
        self.is_kept = False
        self.kept_bytes = len(content[1])
        """See `KEPT_BYTES_MAX`."""

    @property
    def acknowledges(self) -> bool:
        """Whether it has a result, or is going to have one."""
        return not self.results.done or bool(self.results.result())


class KeptAnswers:
    """The answers of all members. Used on the loop's thread only."""

    def __init__(self) -> None:
        self._of_members: dict[ShareSessionKey, list[KeptAnswer]] = {}
        self._kept_bytes = 0
        self._ended: dict[ShareSessionKey, int] = {}
        """Until when the answers of each ended session are kept, in the order of their ends."""

    def __len__(self) -> int:
        return sum(map(len, self._of_members.values()))

    @property
    def kept_bytes(self) -> int:
        """See `KEPT_BYTES_MAX`."""
        return self._kept_bytes

    def keep(self, answer: KeptAnswer) -> None:
        """Keep the answer to the newest request of its session; earlier sessions of the member are
        forgotten.
        """
        key = answer.session.key
        kept = self._of_members.get(key)
        if not kept or kept[0].session is not answer.session:
            self.forget(key)
            kept = self._of_members[key] = []
        elif len(kept) == ANSWERS_OF_SESSION_MAX:
            oldest = kept.pop(0)
            oldest.is_kept = False
            self._kept_bytes -= oldest.kept_bytes
        kept_bytes = self._kept_bytes + answer.kept_bytes
        if answer.kept_bytes and kept_bytes <= KEPT_BYTES_MAX:
            answer.is_kept = True
            kept.append(answer)
            self._kept_bytes = kept_bytes

    def note_acquired(
        self, answer: KeptAnswer, acquired: Mapping[SessionPartition, Acquired], range_count: int
    ) -> None:
        """The answer gives these ranges to the member, and none that it gave before."""
        answer_bytes = len(answer.content[1]) + range_count * RANGE_BYTES
        kept_bytes = self._kept_bytes + answer_bytes - answer.kept_bytes
        if answer.is_kept and kept_bytes <= KEPT_BYTES_MAX:
            answer.acquired, answer.kept_bytes = acquired, answer_bytes
            self._kept_bytes = kept_bytes

    def find(
        self,
        key: ShareSessionKey,
        share_session_epoch: int,
        content: Content,
        *,
        live_session: ShareSession | None,
        now_ms: int,
    ) -> KeptAnswer | None:
        """The first answer to a request that the session of `key` refuses; None if it is not a repeated one.

        `live_session` is the present session of `key`, whose answers are the only ones that count.
        """
        if now_ms >= self._ended.get(key, now_ms + 1):
            self.forget(key)
        for answer in self._of_members.get(key, ()):
            if answer.share_session_epoch == share_session_epoch and answer.content == content:
                return answer if live_session in (None, answer.session) else None
        return None

    def session_ended(self, session: ShareSession, now_ms: int) -> None:
        """Keep the answers with results for `KEPT_AFTER_END_MS`, and forget the others."""
        key = session.key
        kept = self._of_members.get(key, [])
        if not any(answer.session is session and answer.acknowledges for answer in kept):
            self.forget(key)
            return
        self._ended[key] = now_ms + KEPT_AFTER_END_MS
        for ended_key, until_ms in list(self._ended.items()):
            if now_ms < until_ms and len(self._ended) <= ENDED_SESSIONS_MAX:
                break
            self.forget(ended_key)

    def forget(self, key: ShareSessionKey) -> None:
        """Forget the answers of this member, which opens a new session."""
        for answer in self._of_members.pop(key, ()):
            answer.is_kept = False
            self._kept_bytes -= answer.kept_bytes
        self._ended.pop(key, None)
