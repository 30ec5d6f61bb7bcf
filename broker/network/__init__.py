"""Carries requests from sockets to handlers, and answers back."""
