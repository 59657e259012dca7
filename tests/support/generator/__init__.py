"""Random cases of incremental views: schemas, views and delta sequences, each a function of one integer seed."""
