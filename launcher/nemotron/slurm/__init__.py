"""Slurm in its own words: commands asked through a session, and what their answers mean."""
