"""Indexed, retractable state: sorted immutable runs, and the arrangements made of them."""
