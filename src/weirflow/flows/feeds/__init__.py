"""What feeds a flow by itself: streams and tables."""
