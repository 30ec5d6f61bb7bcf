"""The folders of the product."""

FOLDERS = (
    "broker",
    "cli",
    "client",
    "coordinator",
    "pipeline",
    "protocol",
    "runtime",
    "share",
    "storage",
    "testing",
)
