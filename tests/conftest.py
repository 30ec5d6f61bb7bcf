"""Options and markers of the whole test suite."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("barnabas")
    group.addoption(
        "--broker",
        metavar="HOST:PORT",
        help="Run tests/clients against this running broker; tests that start or kill one are deselected.",
    )
    group.addoption(
        "--barnabas",
        metavar="PATH",
        help="The barnabas command to test, instead of the one installed beside this Python.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "barnabas: starts, kills or abuses a broker process of its own")
    # kafka-python reads its own resources in a way that Python 3.11 deprecates and 3.13 allows again.
    config.addinivalue_line("filterwarnings", "ignore:(read|open)_text is deprecated:DeprecationWarning")
