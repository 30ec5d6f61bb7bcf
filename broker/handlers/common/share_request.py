"""A request in a share session, ShareFetch or ShareAcknowledge: its admission, its acknowledgements, its
repetition over another connection, and the end of its session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.coordinator.metadata.share_version import require_share_groups
from barnabas.coordinator.share_group.heartbeat import MEMBER_ID_LENGTH_MAX
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.tuples import maker
from barnabas.runtime.completion import Completion
from barnabas.share.fetch.kept_answers import Content, KeptAnswer, KeptAnswers
from barnabas.share.sessions.acknowledgements import Results
from barnabas.share.sessions.session import (
    FINAL_SHARE_SESSION_EPOCH,
    INITIAL_SHARE_SESSION_EPOCH,
    ShareSession,
    ShareSessionKey,
)

if TYPE_CHECKING:
    from barnabas.broker.config.group_config import GroupConfigs
    from barnabas.coordinator.metadata.image import MetadataImage
    from barnabas.runtime.clock import Clock
    from barnabas.share.sessions.session_cache import ShareSessionCache

ShareBody: TypeAlias = ShareFetchBody | ShareAcknowledgeBody

_REFUSALS_OF_REPEATS: Final = (ErrorCode.share_session_not_found, ErrorCode.invalid_share_session_epoch)
"""The errors of a request whose epoch is used up, or whose session has ended."""


_new_key = maker(ShareSessionKey)


def checked_key(image: MetadataImage, request: ShareBody) -> ShareSessionKey:
    """The key of the request's session, after the first checks of both requests; raises `ApiError`."""
    require_share_groups(image)
    if request.group_id is None:
        raise ApiError(ErrorCode.invalid_request, "The request names no group.")
    if not request.member_id or len(request.member_id) > MEMBER_ID_LENGTH_MAX:
        message = f"The member id must have 1 to {MEMBER_ID_LENGTH_MAX} characters."
        raise ApiError(ErrorCode.invalid_request, message)
    return _new_key((request.group_id, request.member_id))


def finish(
    kept_answers: KeptAnswers,
    end_share_session: Callable[[ShareSession], None],
    session: ShareSession,
    request: ShareBody,
    api_name: str,
    results: Completion[Results],
) -> KeptAnswer | None:
    """The answer, if it is kept because the client may repeat this request; `api_name` distinguishes the
    requests of one API from those of the other. The last request of a session ends it when the results are
    there, even if the client has disconnected by then.
    """
    epoch = request.share_session_epoch
    answer = None
    if epoch == INITIAL_SHARE_SESSION_EPOCH:
        kept_answers.forget(session.key)
    elif session.repeats_requests:
        answer = KeptAnswer(session, epoch, _content(api_name, request), results)
        kept_answers.keep(answer)
    if epoch == FINAL_SHARE_SESSION_EPOCH:
        results.when_done(lambda _: end_share_session(session))
    return answer


def find_first_answer(
    kept_answers: KeptAnswers,
    sessions: ShareSessionCache,
    clock: Clock,
    request: ShareBody,
    api_name: str,
    error: ApiError,
) -> KeptAnswer | None:
    """The first answer, if this request is refused with `error` because the client repeats it."""
    if error.code not in _REFUSALS_OF_REPEATS:
        return None
    key = _new_key((request.group_id, request.member_id))
    return kept_answers.find(
        key,
        request.share_session_epoch,
        _content(api_name, request),
        live_session=sessions.get(key),
        now_ms=clock.monotonic_ms(),
    )


def take_over(sessions: ShareSessionCache, session: ShareSession, connection_id: int) -> bool:
    """The session of a first answer belongs to this connection from now on, if it still lives; returns
    whether it does.
    """
    if sessions.get(session.key) is not session:
        return False
    sessions.move(session, connection_id)
    return True


def lock_duration_ms(configs: GroupConfigs, session: ShareSession) -> int:
    """The duration of the member's locks: its own, or the group's."""
    own_ms = session.lock_duration_ms
    return configs.limits_of(session.key.group_id).lock_duration_ms if own_ms is None else own_ms


def _content(api_name: str, request: ShareBody) -> Content:
    return api_name, request.encoded_topics, request.is_renew_ack
