"""API errors and their messages."""

from __future__ import annotations

import pickle

import pytest

from barnabas.protocol.errors import MESSAGE_LENGTH_MAX, ApiError, ErrorCode


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
