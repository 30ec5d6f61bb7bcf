"""Addresses of listeners: a host and a port."""

from __future__ import annotations

from ipaddress import ip_address


def shown_address(host: str, port: int) -> str:
    """HOST:PORT; 0.0.0.0 for all interfaces, which an empty host stands for."""
    shown = f"[{host}]" if ":" in host else host
    return f"{shown or '0.0.0.0'}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can connect. Of host names only localhost counts."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
