"""Harnesses as `nemo-evaluator` runs them: installed wheels with a framework.yml, and this project's benchmarks."""
