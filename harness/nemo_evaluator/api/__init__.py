"""What the wheels of other harnesses import from `nemo_evaluator`."""
