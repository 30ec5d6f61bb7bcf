"""Syncs and flushes, which make logs durable, and their schedule."""
