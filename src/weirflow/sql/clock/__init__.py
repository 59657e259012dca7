"""The clock of a flow in SQL: what ``now()`` stands for, and which conditions on it are followed."""
