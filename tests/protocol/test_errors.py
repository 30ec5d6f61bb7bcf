"""API errors and their messages."""

from __future__ import annotations

import gc
import pickle
import weakref

import pytest

from barnabas.protocol.errors import MESSAGE_LENGTH_MAX, ApiError, ErrorCode, without_frames
from barnabas.protocol.record_validation import RecordsRejected


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ApiError(ErrorCode.invalid_request), "invalid_request"),
        (
            ApiError(ErrorCode.invalid_request, "The group id is empty."),
            "invalid_request: The group id is empty.",
        ),
    ],
)
def test_an_error_is_printed_with_its_code_and_message(error: ApiError, text: str) -> None:
    assert str(error) == text


def test_a_long_message_keeps_its_start_and_its_end_and_fits_into_any_string() -> None:
    message = ApiError(ErrorCode.invalid_config, f"Invalid value {'😀' * 32_767} for x: too long").message

    assert message is not None
    assert message.startswith("Invalid value 😀") and message.endswith("😀 for x: too long")
    assert len(message) <= MESSAGE_LENGTH_MAX
    assert len(message.encode()) <= 32_767


def test_a_message_of_the_maximum_length_is_unchanged() -> None:
    text = "x" * MESSAGE_LENGTH_MAX

    assert ApiError(ErrorCode.invalid_config, text).message == text


def test_an_error_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(ApiError(ErrorCode.invalid_request, "why")))

    assert (error.code, error.message) == (ErrorCode.invalid_request, "why")


class Body:
    """Something large."""


def test_an_error_that_is_kept_holds_nothing_of_the_functions_that_it_passed() -> None:
    kept: list[ApiError] = []
    bodies: list[weakref.ref[Body]] = []

    def unpack() -> None:
        body = Body()
        bodies.append(weakref.ref(body))
        raise ValueError("malformed")

    def refuse() -> None:
        try:
            unpack()
        except ValueError as error:
            raise ApiError(ErrorCode.invalid_record, "why") from error

    def keep() -> None:
        try:
            refuse()
        except ApiError as error:
            kept.append(without_frames(error))

    gc.disable()
    try:
        keep()
        assert bodies[0]() is None
    finally:
        gc.enable()
    assert isinstance(kept[0].__cause__, ValueError)


def test_a_kept_error_is_equal_to_the_raised_one_and_raising_it_adds_nothing() -> None:
    raised = RecordsRejected("2 of 3 records have no key.", [(0, "no key")])
    raised.__cause__ = OSError("why")
    kept = without_frames(raised)
    for _ in range(2):
        with pytest.raises(RecordsRejected) as caught:
            raise without_frames(kept)
        found = caught.value
        assert (found.code, found.message, found.record_errors) == (
            raised.code,
            raised.message,
            raised.record_errors,
        )
        assert found.__cause__ is raised.__cause__
    assert kept.__traceback__ is None


def test_a_defect_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        _ = 1 / 0
    assert without_frames(caught.value) is caught.value
    assert caught.value.__traceback__ is not None
