"""The error of settings that protect the broker."""


class SecuritySettingError(ValueError):
    """A setting cannot be used; the message names it and says what to do, and contains no secret."""
