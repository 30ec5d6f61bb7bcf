"""What the pipeline raises on its own account; each message says what to do about it."""

from __future__ import annotations


def install_hint(extra: str) -> str:
    """How to get the packages of an optional part: Barnabas is installed from its checkout."""
    return f"run pip install -e '.[{extra}]' in the checkout of Barnabas."


class PipelineError(Exception):
    """Something that the pipeline was asked for cannot be done."""


class OptionError(PipelineError, ValueError):
    """An option is missing, unknown or malformed. The message begins with its name."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"{option}: {reason}")
        self.option = option
        self.reason = reason

    def __reduce__(self) -> tuple[type[OptionError], tuple[str, str]]:
        """Errors cross processes in Spark: made anew from what they were made of."""
        return (OptionError, (self.option, self.reason))
