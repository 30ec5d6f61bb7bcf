"""The users that the configuration names (`sasl.initial.users`): each start gives them their passwords.

A user gets SCRAM credentials for both mechanisms, unless those that are stored fit the password already.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.security.users import fits
from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.scram_credentials import (
    HASH_NAMES,
    ITERATIONS_MIN,
    ScramMechanism,
    Upsertion,
)
from barnabas.runtime.logging import get_logger

log = get_logger("sasl")

_SALT_BYTES = 24


async def create_initial_users(config: BrokerConfig, metadata: Controller) -> None:
    """Stores the credentials that are missing or have another password."""
    for name, password in config.initial_users:
        changes = list(_changes(metadata, name, password))
        for change in changes:  # a request may change one credential of a user
            errors = await metadata.alter_scram_credentials([], [change])
            error = errors[name]
            assert error is None, error
        if changes:
            log.info("user has its initial password", user=name)


def _changes(metadata: Controller, name: str, password: str) -> Iterator[Upsertion]:
    for mechanism in ScramMechanism:
        stored = metadata.image.scram_credentials.get((name, mechanism))
        if stored is None or not fits(stored, password.encode()):
            salt = secrets.token_bytes(_SALT_BYTES)
            salted = hashlib.pbkdf2_hmac(HASH_NAMES[mechanism], password.encode(), salt, ITERATIONS_MIN)
            yield Upsertion(name, mechanism, ITERATIONS_MIN, salt, salted)
