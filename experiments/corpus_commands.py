"""``stagecraft corpus``: collections of chess games and puzzles, made of a user's files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table

from experiments.gpus import usable_cores

if TYPE_CHECKING:  # numba takes a second to import, which the other commands need not wait for
    from testbeds.chess.corpus import GameCorpus, PuzzleCorpus

corpus_app = typer.Typer(
    name="corpus",
    help="Make and list collections of chess games and puzzles; they lie in $STAGECRAFT_CORPORA, or in ./corpora.",
    no_args_is_help=True,
)

EXAMPLE = "Example:  stagecraft corpus "
HEARTBEAT_S = 30.0  # between plain lines
MIB = 1 << 20
LARGE_MIB = 64  # below, worker processes would take longer to start than they save

Name = Annotated[str, typer.Option(help="Of the corpus: letters, digits, '.', '_' and '-'.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a corpus of that name.")]


@corpus_app.command(epilog=f"{EXAMPLE}games lichess_db_standard_rated_2013-01.pgn.zst --name small --min-elo 1800")
def games(  # noqa: PLR0913  # one parameter for each option
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Files in PGN, plain or compressed by zstd.")],
    *,
    name: Name,
    min_elo: Annotated[int | None, typer.Option(help="Least Elo of both players.")] = None,
    max_elo: Annotated[int | None, typer.Option(help="Greatest Elo of both players.")] = None,
    result: Annotated[list[str] | None, typer.Option(help="1-0, 0-1, 1/2-1/2 or *; repeatable. (default: any)")] = None,
    min_plies: Annotated[int, typer.Option(help="Least number of moves of both sides together.")] = 1,
    max_plies: Annotated[int | None, typer.Option(help="Greatest number of moves of both sides together.")] = None,
    min_seconds: Annotated[float | None, typer.Option(help="Least time of a player for 40 moves.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Greatest time of a player for 40 moves.")] = None,
    speed: Annotated[
        list[str] | None,
        typer.Option(help="ultrabullet, bullet, blitz, rapid, classical, correspondence; repeatable. (default: any)"),
    ] = None,
    event: Annotated[str, typer.Option(help="Text that the Event tag contains, such as 'rated'.")] = "",
    unknown: Annotated[
        bool, typer.Option("--unknown", help="Take games whose Elo or time is asked for and not known.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help=f"Processes that read moves. (default: 1, from {LARGE_MIB} MiB on usable cores)"),
    ] = None,
    force: Force = False,
) -> None:
    """Make a corpus of the games of PGN files. Broken games are left out and counted by reason."""
    from testbeds.chess.corpus import build_games
    from testbeds.chess.pgn_filter import RESULTS, GameFilter

    filters = GameFilter(
        min_elo=min_elo,
        max_elo=max_elo,
        results=tuple(result) if result else RESULTS,
        min_plies=min_plies,
        max_plies=max_plies,
        min_seconds=min_seconds,
        max_seconds=max_seconds,
        speeds=tuple(speed or ()),  # type: ignore[arg-type]  # GameFilter refuses other words
        event=event,
        unknown=unknown,
    )
    from experiments.gallery import console

    out = console()
    total = sum(file.stat().st_size for file in files if file.is_file())
    with _all_or_nothing(), _bytes_bar(out, total) as report:
        used = workers or (usable_cores() if total >= LARGE_MIB * MIB else 1)
        made = build_games(name, files, filters, workers=used, report=report, force=force)
    _summary(out, made)


@corpus_app.command(epilog=f"{EXAMPLE}puzzles lichess_db_puzzle.csv.zst --name mates --theme mateIn1 --theme mateIn2")
def puzzles(  # noqa: PLR0913  # one parameter for each option
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The Lichess CSV file, plain or compressed by zstd.")],
    *,
    name: Name,
    min_rating: Annotated[int | None, typer.Option(help="Least rating.")] = None,
    max_rating: Annotated[int | None, typer.Option(help="Greatest rating.")] = None,
    theme: Annotated[
        list[str] | None, typer.Option(help="Theme, such as mateIn1, of which one is needed; repeatable.")
    ] = None,
    without: Annotated[list[str] | None, typer.Option(help="Theme that is not wanted; repeatable.")] = None,
    force: Force = False,
) -> None:
    """Make a corpus of the puzzles of a Lichess file. Broken lines are left out and counted by reason."""
    from testbeds.chess.corpus import PuzzleFilter, build_puzzles

    filters = PuzzleFilter(
        min_rating=min_rating, max_rating=max_rating, themes=tuple(theme or ()), without=tuple(without or ())
    )
    from experiments.gallery import console

    out = console()
    with _all_or_nothing(), _count_bar(out) as report:
        made = build_puzzles(name, file, filters, report=report, force=force)
    _summary(out, made)


@corpus_app.command("list", epilog=f"{EXAMPLE}list")
def list_corpora() -> None:
    """List the corpora with their size, origin and digest."""
    from experiments.gallery import console
    from testbeds.chess.corpus import corpora, root

    out = console()
    table = Table("corpus", "kind", "rows", "made of", "digest", title=f"Corpora in {root()}", title_justify="left")
    for name, manifest in corpora():
        sources = ", ".join(source["name"] for source in manifest["sources"])
        table.add_row(name, manifest["kind"], f"{manifest['rows']:,}", sources, manifest["digest"])
    if table.row_count:
        out.print(table)
    else:
        out.print(f"no corpora in {root()}; `stagecraft corpus games FILE --name NAME` makes one", soft_wrap=True)


@corpus_app.command(epilog=f"{EXAMPLE}verify small mates")
def verify(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Of corpora; all of their files are read.")],
) -> None:
    """Compare the files of corpora with their digests. Opening one compares their sizes alone."""
    from experiments.gallery import console
    from testbeds.chess.corpus import check_name, corpora, corpus_named, root

    out = console()
    kinds = {name: manifest["kind"] for name, manifest in corpora()}
    for name in names:
        check_name(name)
        if name not in kinds:
            raise ValueError(f"there is no whole corpus {name!r} in {root()}; `stagecraft corpus list` has their names")
        found = corpus_named(kinds[name], name)
        found.verify()
        out.print(f"{name}: {len(found):,} {kinds[name]}, whole, digest {found.digest}", soft_wrap=True)


@contextmanager
def _all_or_nothing() -> Iterator[None]:
    """Ctrl-C ends the command with what is left, which is nothing."""
    try:
        yield
    except KeyboardInterrupt:
        Console(stderr=True, markup=False).print("interrupted: nothing was written; the same command begins anew")
        raise typer.Exit(130) from None


@contextmanager
def _bytes_bar(console: Console, total: int) -> Iterator[Callable[[int], None]]:
    """Follows the reading of ``total`` bytes; plain lines off a terminal."""
    if not console.is_terminal:
        yield _lines(console, lambda done: f"{done / MIB:,.0f} of {total / MIB:,.0f} MiB read")
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("reading", total=total)

        def report(done: int) -> None:
            ends = done >= total  # what follows needs no reading: duplicates are looked for, the digest is made
            progress.update(bar, completed=done, description="comparing" if ends else "reading")

        yield report


@contextmanager
def _count_bar(console: Console) -> Iterator[Callable[[int], None]]:
    """Follows the reading of lines whose number is not known; plain lines off a terminal."""
    if not console.is_terminal:
        yield _lines(console, lambda done: f"{done:,} puzzles read")
        return
    with Progress(
        TextColumn("{task.completed:,.0f} puzzles"), BarColumn(), console=console, transient=True
    ) as progress:
        bar = progress.add_task("puzzles", total=None)
        yield lambda done: progress.update(bar, completed=done)


def _lines(console: Console, say: Callable[[int], str]) -> Callable[[int], None]:
    beat = time.monotonic()

    def report(done: int) -> None:
        nonlocal beat
        if time.monotonic() - beat >= HEARTBEAT_S:
            beat = time.monotonic()
            console.print(say(done))

    return report


def _summary(out: Console, corpus: GameCorpus | PuzzleCorpus) -> None:
    """What was kept, what was left out and why."""
    from testbeds.chess.pgn_files import TRUNCATED

    manifest = corpus.open().manifest
    kind = manifest["kind"]
    skipped: dict[str, int] = manifest["skipped"]
    out.print(f"{corpus.name}: {manifest['rows']:,} {kind}, digest {corpus.digest}", soft_wrap=True)
    if manifest["duplicates"]:
        out.print(f"left out: {manifest['duplicates']:,} that were there before")
    for reason, count in sorted(skipped.items(), key=lambda entry: -entry[1]):
        out.print(f"left out: {count:,}  {reason}", soft_wrap=True)
    if TRUNCATED in skipped:
        warning = f"warning: {TRUNCATED}: a download that was cut off? What came before the end is in the corpus"
        Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True).print(warning)
    out.print(f"in {corpus.open().directory}; in Python: corpus_named({kind!r}, {corpus.name!r})", soft_wrap=True)
