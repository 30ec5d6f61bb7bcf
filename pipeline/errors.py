"""The errors of the pipeline itself; each message tells the user how to fix the cause."""

from __future__ import annotations


def install_hint(extra: str) -> str:
    """How to install the packages of an optional part: Barnabas is installed from its checkout."""
    return f"run pip install -e '.[{extra}]' in the checkout of Barnabas."


class PipelineError(Exception):
    """The pipeline cannot do something that the user asked for."""


class OptionError(PipelineError, ValueError):
    """An option is missing, unknown or malformed. The message begins with its name."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"{option}: {reason}")
        self.option = option
        self.reason = reason

    def __reduce__(self) -> tuple[type[OptionError], tuple[str, str]]:
        """Spark pickles errors between processes: this one is made again from its arguments."""
        return (OptionError, (self.option, self.reason))
