"""What is wrong with the configuration, in one sentence for whoever wrote it."""


class ConfigError(Exception):
    """The configuration cannot be used; the broker does not start (exit code 2)."""


class InvalidValueError(ValueError):
    """A value that its setting does not take. The text is Kafka's own, since admin clients show it."""
