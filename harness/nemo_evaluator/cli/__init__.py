"""Command lines. The only place that prints and exits."""
