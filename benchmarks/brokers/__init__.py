"""Brokers to measure behind one interface: this one, Apache Kafka, kfake, whatever runs at an address."""
