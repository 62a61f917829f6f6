"""Measures what browsermw costs: ``python -m benchmarks``. Each file says what it counts and what it leaves out."""
