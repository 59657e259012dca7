"""``JobOrder``: what a job is to do, as it travels from its client; through a pipe, for it holds secrets."""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirflow.errors import ConfigError, PathNotFound, UserCodeError, WeirflowError, did_you_mean

if TYPE_CHECKING:
    from weirflow.config import Settings

_MODULE = "__job_main__"


@dataclass(frozen=True)
class JobOrder:
    """What a job is to do.

    Attributes:
        settings: those of the client's Session, secrets included.
        path: where the client finds modules.
        described: the function in words, for errors.
        function: the function as bytes, or where it is: ``file.py:function`` or ``module:function``.
    """

    settings: dict[str, Any] = field(repr=False)
    path: list[str]
    described: str
    function: bytes | str

    @classmethod
    def to_run(cls, function: Callable[[Any], Any] | str, settings: Settings) -> JobOrder:
        """The order to run a function in a Session like this client's.

        Raises:
            ConfigError: the function cannot be sent, or its text is none.
            PathNotFound: there is no such file.
        """
        # What was not set may depend on what was, so it stays unset. Bars are for terminals, and a job has none.
        given = {**settings.model_dump(exclude_unset=True), "progress": "off"}
        if isinstance(function, str):
            _split(function)
            return cls(given, list(sys.path), function, function)
        described = str(getattr(function, "__qualname__", function))
        from weirflow.spark.jobs.function_copies import copied  # noqa: PLC0415 - imports pyspark

        return cls(given, list(sys.path), described, copied(function, described))

    def to_bytes(self) -> bytes:
        """As it is sent."""
        return pickle.dumps(self)

    @classmethod
    def from_bytes(cls, content: bytes) -> JobOrder:
        """As it was sent."""
        order = pickle.loads(content)  # noqa: S301 - the client's, which has started this process
        assert isinstance(order, cls)
        return order

    def loaded(self) -> Callable[[Any], Any]:
        """The function, in the job's process; modules are found where the client finds them.

        Raises:
            ConfigError: there is no such function.
            UserCodeError: its module cannot be imported.
        """
        sys.path[:] = self.path
        try:
            if isinstance(self.function, str):
                return _found(self.function)
            from weirflow.spark.jobs.function_copies import from_copy  # noqa: PLC0415 - imports pyspark

            return from_copy(self.function)
        except WeirflowError:
            raise
        except (Exception, SystemExit) as error:
            raise raised_by(f"{self.described} cannot be loaded:", error) from error


def default_name(function: Callable[[Any], Any] | str) -> str:
    """What a job is called that is given no name: as its function."""
    if isinstance(function, str):
        return _split(function)[1].rpartition(".")[2]
    return str(getattr(function, "__name__", function))


def raised_by(what: str, error: BaseException) -> UserCodeError:
    """An error of the user's code, with its traceback from there on where it was called."""
    called = error.__traceback__.tb_next if error.__traceback__ else None
    text = "".join(traceback.format_exception(type(error), error, called)).rstrip()
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return UserCodeError(f"{what} {said}\n{text}")


def _split(text: str) -> tuple[str, str]:
    where, colon, function = text.rpartition(":")
    if not colon or not where or not all(part.isidentifier() for part in function.split(".")):
        raise ConfigError(
            f"{text!r} does not say where a function is.", hint="write file.py:function or module:function"
        )
    if where.endswith(".py") and not Path(where).is_file():
        folder = Path(where).parent
        near = [path.name for path in folder.glob("*.py")]
        raise PathNotFound(
            f"There is no file {where}.",
            hint=did_you_mean(Path(where).name, near) or f"{folder.absolute()} has {', '.join(sorted(near)) or 'none'}",
        )
    return where, function


def _found(text: str) -> Callable[[Any], Any]:
    where, function = _split(text)
    module = _from_file(Path(where).absolute()) if where.endswith(".py") else _from_path(where)
    try:
        found = attrgetter(function)(module)
    except AttributeError:
        known = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        raise ConfigError(
            f"{where} has no {function!r}.",
            hint=did_you_mean(function, known) or f"it has {', '.join(known[:10]) or 'no function'}",
        ) from None
    if not callable(found):
        raise ConfigError(f"{text} is no function, it is {found!r}.", hint="name a function that takes a Session")
    made: Callable[[Any], Any] = found
    return made


def _from_path(name: str) -> Any:
    """A module that the client finds, or that is in the working folder."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # one that the module itself imports
        raise ConfigError(
            f"There is no module {error.name!r}.",
            hint=f"it is neither in {Path.cwd()} nor installed; file.py:function names a file",
        ) from None


def _from_file(file: Path) -> Any:
    """A file's module. It finds the modules beside it, as a script does; its functions go to workers whole."""
    from weirflow.spark.jobs.function_copies import copy_whole  # noqa: PLC0415 - imports pyspark

    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(_MODULE, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    spec.loader.exec_module(module)
    copy_whole(module)
    return module
