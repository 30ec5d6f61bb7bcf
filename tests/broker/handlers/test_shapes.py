"""Each handler uses the message classes of its API's shapes, which the codec reads and writes."""

from __future__ import annotations

from importlib import import_module

import pytest

from barnabas.protocol.api import APIS, ApiKey, ApiSpec
from barnabas.protocol.codec import OWN_DECODERS, shape_version
from barnabas.protocol.kio_messages import message_class

ENCODED_BY_HANDLER = {
    message_class(ApiKey.DESCRIBE_CONFIGS, 4, "response"),
    message_class(ApiKey.DESCRIBE_TRANSACTIONS, 0, "response"),
    message_class(ApiKey.FIND_COORDINATOR, 6, "response"),
}
"""Responses that a handler writes with an encoder of `protocol.encode`, and never as an object."""


@pytest.mark.parametrize(
    "spec", [spec for spec in APIS.values() if spec.key not in OWN_DECODERS], ids=lambda spec: spec.name
)
def test_handlers_import_the_classes_of_the_shapes(spec: ApiSpec) -> None:
    versions = {shape_version(spec.key, version) for version in range(spec.min_version, spec.max_version + 1)}
    shapes = {message_class(spec.key, version, "request") for version in versions}
    shapes |= {message_class(spec.key, version, "response") for version in versions}
    names = {shape.__name__ for shape in shapes}
    module = import_module(f"barnabas.broker.handlers.{spec.name}")
    imported = {one for one in vars(module).values() if getattr(one, "__name__", None) in names}

    assert imported == shapes - ENCODED_BY_HANDLER
