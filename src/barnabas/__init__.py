"""Barnabas: a light, durable broker for Kafka share groups."""
