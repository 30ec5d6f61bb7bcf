"""The same histories on Apache Kafka and on this broker, every field compared (`make diff`)."""
