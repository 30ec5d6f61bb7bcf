"""Who a client is: TLS with client certificates, and principals. It knows settings by their values alone."""
