"""Errors in the configuration; each message is one sentence for the administrator."""


class ConfigError(Exception):
    """The configuration cannot be used; the broker does not start (exit code 2)."""


class InvalidValueError(ValueError):
    """A value that its setting does not accept. The text is Kafka's own, because admin clients show it."""
