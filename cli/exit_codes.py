"""The exit codes of all commands. `barnabas log` and `barnabas pipeline` have further meanings of theirs."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The result of a command, for scripts."""

    DONE = 0
    """Everything that was asked for is done."""
    FAILED = 1
    """The command failed, and no other code fits."""
    USAGE = 2
    """The command line or the configuration is wrong; nothing was done."""
    NOT_ALL = 3
    """A part is done; the output names the rest."""
    NOT_CONNECTED = 4
    """No broker answers, or the broker and the client refuse each other (TLS, SASL)."""
    REFUSED = 5
    """The broker refused the request."""
    NOT_FOUND = 6
    """There is no such topic, group, partition or record, or no record matches."""
    STOPPED = 130
    """Ctrl-C, SIGTERM, or the end of the program that reads the output."""
