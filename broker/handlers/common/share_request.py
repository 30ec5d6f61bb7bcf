"""A request in a share session, ShareFetch or ShareAcknowledge: its admission, its acknowledgements, its
repetition over another connection, and the end of its session.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.broker.network.handler import RequestContext
from barnabas.coordinator.metadata.share_version import require_share_groups
from barnabas.coordinator.share_group.heartbeat import MEMBER_ID_LENGTH_MAX
from barnabas.protocol.decode.acknowledgements import AckTopic
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.completion import Completion
from barnabas.share.fetch.kept_answers import Content, KeptAnswer
from barnabas.share.leader.acknowledgements import Acknowledge, Results, acknowledge_all
from barnabas.share.sessions.session import INITIAL_SHARE_SESSION_EPOCH, ShareSession, ShareSessionKey
from barnabas.share.sessions.session_cache import SessionRequest

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker

_REFUSALS_OF_REPEATS = (ErrorCode.share_session_not_found, ErrorCode.invalid_share_session_epoch)
"""The errors of a request whose epoch is used up, or whose session has ended."""


class ShareRequest:
    """The part that both requests have in common. `key` names the session."""

    __slots__ = ("_body", "_broker", "_content", "_context", "key")

    def __init__(
        self,
        broker: Broker,
        context: RequestContext,
        body: ShareFetchBody | ShareAcknowledgeBody,
        api_name: str,
    ) -> None:
        """`api_name` distinguishes the requests of one API from those of the other."""
        self.key = ShareSessionKey(body.group_id or "", body.member_id or "")
        self._broker = broker
        self._context = context
        self._body = body
        self._content: Content = api_name, body.encoded_topics, body.is_renew_ack

    def check_caller(self) -> None:
        """The first checks of both requests; raises `ApiError`."""
        require_share_groups(self._broker.metadata.image)
        if self._body.group_id is None:
            raise ApiError(ErrorCode.invalid_request, "The request names no group.")
        if not self.key.member_id or len(self.key.member_id) > MEMBER_ID_LENGTH_MAX:
            raise ApiError(
                ErrorCode.invalid_request,
                f"The member id must have 1 to {MEMBER_ID_LENGTH_MAX} characters.",
            )

    def find_first_answer(self, error: ApiError) -> KeptAnswer | None:
        """The first answer, if this request is refused with `error` because the client repeats it."""
        if error.code not in _REFUSALS_OF_REPEATS:
            return None
        return self._broker.kept_answers.find(
            self.key,
            self._body.share_session_epoch,
            self._content,
            live_session=self._broker.share_sessions.get(self.key),
            now_ms=self._broker.clock.monotonic_ms(),
        )

    def take_over(self, session: ShareSession) -> bool:
        """The session of a first answer belongs to this connection from now on, if it still lives; returns
        whether it does.
        """
        sessions = self._broker.share_sessions
        if sessions.get(session.key) is not session:
            return False
        sessions.move(session, self._context.connection_id)
        return True

    def acknowledge(
        self,
        topics: Iterable[AckTopic],
        lock_duration_ms: int | None,
        acknowledge: Acknowledge | None = None,
    ) -> Completion[Results]:
        """See `acknowledge_all`."""
        limits = self._broker.group_configs.limits_of(self.key.group_id)
        if lock_duration_ms is not None:
            limits = limits._replace(lock_duration_ms=lock_duration_ms)
        return acknowledge_all(
            self._broker.share_partitions,
            self._broker.fetch_source.leadership_error,
            self.key.group_id,
            self.key.member_id,
            topics,
            version=self._context.api_version,
            is_renew_ack=self._body.is_renew_ack,
            limits=limits,
            now_ms=self._broker.clock.monotonic_ms(),
            acknowledge=acknowledge,
        )

    def finish(self, found: SessionRequest, results: Completion[Results]) -> KeptAnswer:
        """The answer, which is kept if the client may repeat this request. The last request of a session ends
        it when the results are there, even if the client has disconnected by then.
        """
        session, epoch = found.session, self._body.share_session_epoch
        answer = KeptAnswer(session, epoch, self._content, results)
        if epoch == INITIAL_SHARE_SESSION_EPOCH:
            self._broker.kept_answers.forget(self.key)
        elif session.repeats_requests:
            self._broker.kept_answers.keep(answer)
        if found.is_final:
            results.when_done(lambda _: self._broker.end_share_session(session))
        return answer


def lock_duration_ms(broker: Broker, session: ShareSession) -> int:
    """The duration of the member's locks: its own, or the group's."""
    own_ms = session.lock_duration_ms
    return broker.group_configs.limits_of(session.key.group_id).lock_duration_ms if own_ms is None else own_ms
