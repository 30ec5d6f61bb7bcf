"""The measured brokers behind one interface: Barnabas, Apache Kafka, kfake, or a broker at an address."""
