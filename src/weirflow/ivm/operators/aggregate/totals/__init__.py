"""Aggregates that follow their group by additive totals, exact whatever is taken back."""
