"""Everything that touches PySpark, and nothing else does: launching, connecting, frames, plans, errors.

Importing this package imports nothing; its modules import pyspark, so the rest of Weirflow imports them late.
"""
