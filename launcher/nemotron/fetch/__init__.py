"""Results and logs of jobs, brought home."""
