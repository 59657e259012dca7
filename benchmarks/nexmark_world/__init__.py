"""Nexmark: people, their auctions and the bids on them, and its queries q0 to q22 over tables instead of streams."""
