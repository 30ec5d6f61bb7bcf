"""The address of a peer, as log lines name it."""

from __future__ import annotations


def written_address(peer: tuple[object, ...] | None) -> str:
    """Address and port of a socket's peer; empty for a socket without a peer address."""
    if not peer:
        return ""
    host, port = peer[:2]
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
