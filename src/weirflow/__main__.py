"""``python -m weirflow`` is the ``weirflow`` command."""

from weirflow.cli import main

if __name__ == "__main__":
    main()
