from __future__ import annotations

import pickle

import pytest

from barnabas.protocol.errors import ApiError, ErrorCode


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
def test_an_error_says_its_code_and_message(error: ApiError, text: str) -> None:
    assert str(error) == text


def test_an_error_survives_being_sent_between_processes() -> None:
    error = pickle.loads(pickle.dumps(ApiError(ErrorCode.invalid_request, "why")))

    assert (error.code, error.message) == (ErrorCode.invalid_request, "why")
