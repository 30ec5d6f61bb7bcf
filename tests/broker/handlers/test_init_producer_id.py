"""InitProducerId: a new id for each request, and errors."""

import pytest
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest

from barnabas.broker.handlers.init_producer_id import handle_init_producer_id
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import ProducerId, TransactionalId, i16, milliseconds
from tests.broker.handlers.admin_broker import AdminBroker, ask


def request(
    transactional_id: str | None = None, producer_id: int = -1, producer_epoch: int = -1
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=None if transactional_id is None else TransactionalId(transactional_id),
        transaction_timeout=milliseconds(60_000),
        producer_id=ProducerId(producer_id),
        producer_epoch=i16(producer_epoch),
    )


async def test_each_producer_gets_an_id_of_its_own(broker: AdminBroker) -> None:
    answers = [await ask(broker, handle_init_producer_id, request(), version=version) for version in range(6)]
    assert [(one.producer_id, one.producer_epoch) for one in answers] == [(number, 0) for number in range(6)]


async def test_a_producer_that_lost_its_state_gets_a_new_id(broker: AdminBroker) -> None:
    answer = await ask(broker, handle_init_producer_id, request(None, 1_000, 3))
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (ErrorCode.none, 0, 0)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (request(None, 5, -1), ErrorCode.invalid_request),
        (request(None, -1, 5), ErrorCode.invalid_request),
        (request("tx", 5, -1), ErrorCode.invalid_request),
    ],
)
async def test_a_request_that_contradicts_itself_is_refused(
    broker: AdminBroker, asked: InitProducerIdRequest, code: ErrorCode
) -> None:
    answer = await ask(broker, handle_init_producer_id, asked)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)


async def test_an_id_that_cannot_be_written_is_not_given(broker: AdminBroker) -> None:
    broker.store.broken = True
    answer = await ask(broker, handle_init_producer_id, request())
    assert (answer.error_code, answer.producer_id) == (ErrorCode.kafka_storage_error, -1)
