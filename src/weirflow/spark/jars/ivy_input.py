"""What Ivy is told to fetch."""

from __future__ import annotations

import re
from collections.abc import Sequence

from weirflow.spark.jars.artifacts import Artifact, Dependencies

# Spark loads its own copy of these first, whatever is put beside it.
_SHIPPED_WITH_SPARK = (
    ("org.apache.spark", ".*"),
    ("org.scala-lang", ".*"),
    ("org.apache.hadoop", "hadoop-client-.*"),
    ("org.slf4j", ".*"),
    ("org.apache.logging.log4j", ".*"),
    ("log4j", ".*"),
    ("ch.qos.logback", ".*"),
    ("ch.qos.reload4j", ".*"),
    ("commons-logging", ".*"),
)


def ivy_xml(artifacts: Sequence[Artifact]) -> str:
    """Ivy's input: each artifact in a configuration of its own, so that none decides another's versions."""
    configurations = "".join(f'<conf name="c{number}"/>' for number in range(len(artifacts)))
    dependencies = "\n".join(_dependency(f"c{number}", artifact) for number, artifact in enumerate(artifacts))
    return (
        '<ivy-module version="2.0">\n<info organisation="weirflow" module="fetch"/>\n'
        f"<configurations>{configurations}</configurations>\n"
        f"<dependencies>\n{dependencies}\n</dependencies>\n</ivy-module>\n"
    )


def _dependency(conf: str, artifact: Artifact) -> str:
    """One line of Ivy's input; the pattern of a coordinate leaves nothing to escape."""
    coordinate, depth = artifact.coordinate, artifact.dependencies
    excluded = _SHIPPED_WITH_SPARK if depth is Dependencies.BESIDES_SPARK else ()
    # Ivy would exclude the artifact itself as well, and who names a part of Spark wants it.
    itself = f"(?!{re.escape(coordinate.artifact)}$)"
    excludes = "".join(
        f'<exclude org="{re.escape(org)}" module="{itself if org == coordinate.group else ""}{module}"'
        ' matcher="regexp"/>'
        for org, module in excluded
    )
    mapping = f'{conf}->master" transitive="false' if depth is Dependencies.NONE else f"{conf}->default"
    return (
        f'<dependency org="{coordinate.group}" name="{coordinate.artifact}" rev="{coordinate.version}"'
        f' conf="{mapping}">{excludes}</dependency>'
    )
