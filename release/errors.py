"""The error of a release."""


class ReleaseError(Exception):
    """The release cannot be built; the message says why, and how to go on."""
