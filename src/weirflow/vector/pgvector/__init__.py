"""PostgreSQL with the extension pgvector as a vector store."""
