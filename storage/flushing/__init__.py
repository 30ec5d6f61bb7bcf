"""Making logs durable: when, and how far."""
