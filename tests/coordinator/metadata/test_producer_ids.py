"""Producer ids: one by one out of blocks, also for callers that wait for the next block."""

import pytest

from barnabas.coordinator.metadata.producer_ids import ProducerIds
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.completion import Completion


class Blocks:
    """Blocks of two ids, handed out by the test."""

    def __init__(self) -> None:
        self.asked: list[Completion[range]] = []

    def allocate(self) -> Completion[range]:
        self.asked.append(Completion())
        return self.asked[-1]

    def give(self) -> None:
        number = len(self.asked) - 1
        self.asked[-1].complete(range(2 * number, 2 * number + 2))


def test_waiting_callers_share_one_block_and_the_rest_ask_for_the_next() -> None:
    blocks = Blocks()
    ids = ProducerIds(blocks.allocate)
    replies = [ids.next_id() for _ in range(3)]
    assert len(blocks.asked) == 1
    blocks.give()
    assert [reply.done for reply in replies] == [True, True, False]
    assert len(blocks.asked) == 2
    blocks.give()
    assert [reply.result() for reply in replies] == [0, 1, 2]
    assert ids.next_id().result() == 3


@pytest.mark.parametrize("error", [ApiError(ErrorCode.kafka_storage_error), ZeroDivisionError()])
def test_a_failed_block_fails_the_waiting_callers_and_is_asked_for_again(error: Exception) -> None:
    blocks = Blocks()
    ids = ProducerIds(blocks.allocate)
    reply = ids.next_id()
    blocks.asked[0].fail(error)
    assert repr(reply.error) == repr(error)
    ids.next_id()
    assert len(blocks.asked) == 2


def test_a_defect_while_the_next_block_is_asked_for_fails_those_who_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocks = Blocks()
    ids = ProducerIds(blocks.allocate)
    replies = [ids.next_id() for _ in range(3)]
    monkeypatch.setattr(ids, "_allocate_block", lambda: 1 // 0)
    blocks.give()
    assert [type(reply.error) for reply in replies] == [type(None), type(None), ZeroDivisionError]
