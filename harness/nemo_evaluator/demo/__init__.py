"""A small real model on loopback, for the first run and for tests: `python -m nemo_evaluator.demo`."""
