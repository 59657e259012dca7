"""Being written."""
Generator = None
compile_generator = None
