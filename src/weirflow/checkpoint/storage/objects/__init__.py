"""Objects in S3, Google and Azure storage."""
