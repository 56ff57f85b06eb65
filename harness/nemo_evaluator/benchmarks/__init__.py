"""The bundled benchmarks, one file each; the registry finds a new file by its name."""
