"""Queries that outlive their client: each job is a process of its own, found again by its name in a folder of jobs."""
