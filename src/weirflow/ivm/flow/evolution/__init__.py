"""Views that become others while the flow lives, and checkpoints taken into a flow that has changed."""
