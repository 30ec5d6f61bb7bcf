"""The steps of a restart, as docs/architecture.md describes them."""

import re

from tests.conformance.described_way import ARCHITECTURE, PROJECT, described_steps


def test_the_functions_of_a_restart_are_where_they_are_described() -> None:
    steps = described_steps(ARCHITECTURE, "A restart")
    assert steps
    for file, function in steps:
        assert re.search(rf"^ *(async )?def {function}\(", (PROJECT / file).read_text(), re.MULTILINE), (
            function
        )
