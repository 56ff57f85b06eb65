"""Numbers in, numbers out: the only part of the engine that needs numpy."""
