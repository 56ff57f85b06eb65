"""Text in, verdict out: pure functions, each fast enough to run between two requests."""
