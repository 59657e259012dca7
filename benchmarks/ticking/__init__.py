"""The parts of ``benchmarks/ticks.py``: data, views, and one child process for each system that is measured."""
