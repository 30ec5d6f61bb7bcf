"""Decoders of requests whose payload must not be copied, or that follow every record."""
