"""Users that the configuration names have their passwords after each start."""

from __future__ import annotations

from barnabas.broker.security.users import fits
from tests.conformance.harness import Lab, open_lab


def passwords(lab: Lab, *candidates: str) -> dict[tuple[str, int], list[str]]:
    """Those of the candidates that each stored credential fits."""
    return {
        key: [password for password in candidates if fits(credential, password.encode())]
        for key, credential in lab.broker.metadata.image.scram_credentials.items()
    }


async def test_a_user_gets_credentials_for_both_mechanisms() -> None:
    async with open_lab(sasl__initial__users="alice:a secret:with:colons, bob:b") as lab:
        assert passwords(lab, "a secret:with:colons", "b", "") == {
            ("alice", 1): ["a secret:with:colons"],
            ("alice", 2): ["a secret:with:colons"],
            ("bob", 1): ["b"],
            ("bob", 2): ["b"],
        }


async def test_a_start_changes_only_passwords_that_differ() -> None:
    async with open_lab(sasl__initial__users="alice:old,bob:same") as lab:
        before = dict(lab.broker.metadata.image.scram_credentials)
        lab.given["sasl.initial.users"] = "alice:new,bob:same"
        await lab.restart()
        assert passwords(lab, "old", "new", "same") == {
            ("alice", 1): ["new"],
            ("alice", 2): ["new"],
            ("bob", 1): ["same"],
            ("bob", 2): ["same"],
        }
        after = lab.broker.metadata.image.scram_credentials
        assert [after["bob", mechanism] == before["bob", mechanism] for mechanism in (1, 2)] == [True, True]
