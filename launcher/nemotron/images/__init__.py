"""Container images by name and digest, without a container engine."""
