"""Many jobs that differ in little, most often in their endpoint: submitted together, looked after together."""
