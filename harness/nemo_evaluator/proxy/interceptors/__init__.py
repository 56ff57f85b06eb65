"""One file an interceptor, each with one class."""
