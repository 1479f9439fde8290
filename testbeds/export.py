"""Suites as files: JSONL or Parquet with one row per problem, and a manifest beside it.

A file appears whole or not at all: rows go to a temporary file in the same directory, which is renamed once the last
one is on the disk. The manifest is written after the rows: a file with its manifest is complete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal, TypedDict, get_args

from testbeds.census import Census
from testbeds.core import EXPLICIT, Problem, Task, TraceStyle
from testbeds.demonstrations import demonstration
from testbeds.identity import canonical, qualified_name
from testbeds.mixture import Component, Mixture
from testbeds.suites import Suite

Format = Literal["jsonl", "parquet"]

ROWS_AT_ONCE = 8192  # rows per Parquet row group: a few megabytes in memory


class Row(TypedDict):
    """One problem of an exported suite; every value is text or a whole number, so that both formats hold the same."""

    split: str
    """Split of the problem."""
    index: int
    """Its place in ``Suite.distinct`` of that split."""
    key: str
    """Its canonical form."""
    prompt: str
    """What the policy reads."""
    answer: str
    """The demonstration's final answer."""
    trace: str
    """The demonstration, answer included, in the manifest's style."""
    style: str
    """Granularity of the trace; ``composed/2`` folds two steps into one."""
    features: str
    """Measured difficulty, a JSON object."""
    certificate: str
    """What the verifier needs, in JSON; hide it from the policy."""
    task: str
    """The task with all its fields, in JSON."""
    data_source: str
    """Name of the testbed, by which other trainers pick a verifier."""


def write_suite(
    suite: Suite,
    counts: Mapping[str, int],
    path: Path,
    style: TraceStyle = EXPLICIT,
    format: Format | None = None,
) -> dict[str, object]:
    """Writes ``suite.distinct(split, n)`` for each ``split: n`` of ``counts`` to ``path``; returns the manifest.

    The manifest is also written to ``path`` + ``.manifest.json``. The format follows the file's ending unless given.
    Traces are those of ``demonstration``, as in training.

    Raises:
        ValueError: for a split that does not exist or holds fewer problems, or a style that the task cannot write.
        OSError: where the destination cannot be written. In both cases nothing is left behind.
    """
    written_as = format or _format_of(path)
    if written_as not in get_args(Format):
        raise ValueError(f"format must be one of {', '.join(get_args(Format))}, got {written_as!r}")
    if not counts:
        raise ValueError("counts is empty; say how many problems of which split, such as {'train': 1000}")
    for split in counts:
        suite.splits.require(split)
    census = Census(suite.task, counts)
    writer = _write_parquet if written_as == "parquet" else _write_jsonl
    with _appearing_whole(path, path.with_name(path.name + ".manifest.json")) as (rows_file, manifest_file):
        writer(rows_file, _rows(suite, counts, style, census))
        manifest = suite.describe(census) | {
            "columns": list(Row.__annotations__),
            "file": path.name,
            "format": written_as,
            "style": canonical(style),
        }
        manifest_file.write(json.dumps(manifest, indent=2, sort_keys=True).encode() + b"\n")
    return manifest


def _rows(suite: Suite, counts: Mapping[str, int], style: TraceStyle, census: Census) -> Iterator[Row]:
    manner = style.granularity if style.group == 1 else f"{style.granularity}/{style.group}"
    for split, count in counts.items():
        for index, problem in enumerate(suite.each_distinct(split, count)):
            trace = demonstration(suite.task, problem, style)
            task, certificate = _component(suite.task, problem)
            census.add(split, problem)
            yield Row(
                split=split,
                index=index,
                key=problem.key,
                prompt=problem.prompt,
                answer=trace.answer,
                trace=trace.text,
                style=manner,
                features=_json(dict(problem.features)),
                certificate=_json(canonical(certificate)),
                task=_json(canonical(task)),
                data_source=f"stagecraft/{qualified_name(type(task)).split('.')[1]}",
            )


def _component(task: Task, problem: Problem) -> tuple[Task, object]:
    """The task that a problem is of, under any mixtures, and the certificate that it gave."""
    while isinstance(task, Mixture) and isinstance(problem.certificate, Component):
        task, problem = task.component(problem)
    return task, problem.certificate


def _json(content: object) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def _write_jsonl(file: BinaryIO, rows: Iterator[Row]) -> None:
    for row in rows:
        file.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")


def _write_parquet(file: BinaryIO, rows: Iterator[Row]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: pa.int64() if name == "index" else pa.string() for name in Row.__annotations__}
    schema = pa.schema(list(columns.items()))
    with pq.ParquetWriter(file, schema) as writer:
        while batch := list(islice(rows, ROWS_AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))


def _format_of(path: Path) -> str:
    ending = path.suffix.removeprefix(".")
    if ending not in get_args(Format):
        raise ValueError(f"{path.name!r} does not end in .jsonl or .parquet; rename it or give format=")
    return ending


@contextmanager
def _appearing_whole(*paths: Path) -> Iterator[Sequence[BinaryIO]]:
    """Files to write to that become ``paths`` together at the end, or are gone if anything went wrong."""
    temporaries = [path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in paths]
    try:
        with ExitStack() as opened:
            files = [opened.enter_context(temporary.open("wb")) for temporary in temporaries]
            yield files
            for file in files:
                file.flush()
                os.fsync(file.fileno())
        for temporary, path in zip(temporaries, paths, strict=True):
            temporary.replace(path)
    except OSError as error:
        raise OSError(error.errno, f"cannot write {paths[0]}: {error.strerror or error}") from error
    finally:
        for temporary in temporaries:
            with suppress(OSError):  # it was renamed, or its directory cannot be written
                temporary.unlink()
