"""DescribeConfigs responses, versions 1 to 4.

Thousands of topics have nearly all settings in common, so each of these settings is encoded once and used
repeatedly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final

from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kio_messages import message_writer
from barnabas.protocol.message_parts import INT16, INT32, NO_TAGS, compact_count, compact_string, string

FLEXIBLE_VERSION: Final = 4


@cache
def setting_encoder(version: int) -> Callable[[DescribeConfigsResourceResult], bytes]:
    """The encoder of one setting of a resource."""
    module: Any = import_module(f"kio.schema.describe_configs.v{version}.response")
    return message_writer(DescribeConfigsResourceResult, module.DescribeConfigsResourceResult)


def encode_response_start(version: int, resource_count: int) -> bytes:
    """The bytes before the first resource."""
    return INT32.pack(0) + _count(version, resource_count)


def encode_resource(
    version: int,
    error_code: ErrorCode,
    error_message: str,
    resource_type: int,
    resource_name: str,
    settings: Sequence[bytes],
) -> list[bytes]:
    """One resource, with settings that `setting_encoder` has encoded."""
    is_flexible = version >= FLEXIBLE_VERSION
    text = compact_string if is_flexible else string
    start = b"".join(
        (
            INT16.pack(error_code.value),
            text(error_message),
            resource_type.to_bytes(1, signed=True),
            text(resource_name),
            _count(version, len(settings)),
        )
    )
    return [start, *settings, encode_end(version)]


def encode_end(version: int) -> bytes:
    """The bytes after a resource, and after the last one."""
    return NO_TAGS if version >= FLEXIBLE_VERSION else b""


def _count(version: int, count: int) -> bytes:
    return compact_count(count) if version >= FLEXIBLE_VERSION else INT32.pack(count)
