"""``DetachedJobs``: the jobs at a place, started and found again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirflow.arguments import Folder, checked
from weirflow.errors import AlreadyExists, ConfigError, StreamNotFound, did_you_mean
from weirflow.streaming.detached.folder import JobFolder, job_folders
from weirflow.streaming.detached.order import JobOrder, default_name
from weirflow.streaming.detached.query import DetachedQuery
from weirflow.streaming.detached.start import start_job

if TYPE_CHECKING:
    from weirflow.config import Settings

_FOLDER = "jobs"


@checked
def place_of_jobs(settings: Settings, at: Folder | None) -> Path:
    """The folder of jobs that is meant.

    Raises:
        ConfigError: none is, or it is not on this machine.
    """
    if at is None:
        if settings.path is None:
            raise ConfigError(
                "Detached queries are found again in a folder, and a Session without a path has none.",
                hint="say where with at=; in the shell with --at or --path",
            )
        return settings.path / _FOLDER
    return Path(at)


class DetachedJobs:
    """The jobs at a place.

    Args:
        at: the folder that has a folder for each job; there need not be one yet.
    """

    def __init__(self, at: Path) -> None:
        self.at = at

    def start(
        self, function: Callable[[Any], Any] | str, name: str | None, settings: Settings
    ) -> DetachedQuery | list[DetachedQuery]:
        """Run a function in a process of its own; see ``StreamingQueryManager.detach``."""
        folder = JobFolder(self.at, default_name(function) if name is None else name)
        if folder.running:
            raise already_runs(folder)
        order = JobOrder.to_run(function, settings)
        folder.create()
        queries = [DetachedQuery(folder, query) for query in start_job(folder, order)]
        return queries if len(queries) > 1 else queries[0]

    def queries(self) -> list[DetachedQuery]:
        """The queries of all jobs, running and ended, by the names of their jobs."""
        recorded = [(folder, folder.record()) for folder in job_folders(self.at)]
        return [DetachedQuery(folder, query.info.name) for folder, job in recorded if job for query in job.queries]

    def required(self, name: str) -> list[DetachedQuery]:
        """As ``named``; raises ``StreamNotFound`` if there is none."""
        if found := self.named(name):
            return found
        known = sorted({one for query in self.queries() for one in (query.name, query.job)})
        raise StreamNotFound(
            f"No query or job at {self.at} is called {name!r}.",
            hint=did_you_mean(name, known) or (f"there are {', '.join(known)}" if known else "there are no jobs"),
        )

    def folder(self, name: str) -> JobFolder:
        """The folder of the job of this name, or of the job that has such a query; also one that has not started."""
        folder = JobFolder(self.at, name)
        return folder if folder.log.exists() else JobFolder(self.at, self.required(name)[0].job)

    def named(self, name: str) -> list[DetachedQuery]:
        """The queries of this name or id, else all those of the job of this name; those first whose job runs."""
        every = self.queries()
        found = [query for query in every if name in (query.name, query.id)] or [
            query for query in every if name == query.job
        ]
        return sorted(found, key=lambda query: not JobFolder(self.at, query.job).running)


def already_runs(folder: JobFolder) -> AlreadyExists:
    """The error for a second job of a name."""
    return AlreadyExists(
        f"A job called {folder.name!r} runs already at {folder.path.parent}.",
        hint="stop it first, or give this one another name",
    )
