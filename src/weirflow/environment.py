"""The names of the environment variables; `config.py` reads all of them but the one that is about the process."""

from typing import Final

ENV_PREFIX: Final = "WEIRFLOW_"

COMPILED: Final = "WEIRFLOW_COMPILED"
"""The one that is about the process and no Session: whether incremental views use compiled kernels."""

SERVER_PREFIX: Final = "WEIRFLOW_SERVER_"
"""How the variables begin that are a server's; `server/settings.py` reads them."""
