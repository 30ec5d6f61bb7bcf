"""Heartbeat (key 12, KIP-345): the messages of version 4."""

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse

__all__ = ["HeartbeatRequest", "HeartbeatResponse"]
