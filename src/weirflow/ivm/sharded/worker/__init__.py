"""What a task does on its shard, and what it is told and reports."""
