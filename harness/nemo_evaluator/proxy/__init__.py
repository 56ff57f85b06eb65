"""The adapter between a harness and the endpoint: on loopback, one per task, an interceptor a file."""
