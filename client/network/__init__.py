"""Connections to brokers: addresses, TLS, SASL, requests and their answers."""
