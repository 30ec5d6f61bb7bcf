"""The same histories on Apache Kafka and on Barnabas, compared in every field (`make diff`)."""
