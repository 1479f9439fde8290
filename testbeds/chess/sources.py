"""Where games come from: the sample that is shipped, a corpus on disk, self-play, and an engine that is installed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final, Literal, get_args

import chess
import chess.engine
import numpy as np
from numpy.random import Generator

from testbeds.chess import rules
from testbeds.chess.corpus import GameCorpus
from testbeds.chess.games import Game
from testbeds.chess.pgn import read_games

Policy = Literal["random", "greedy", "one_ply", "two_ply"]

SHIPPED: Final = Path(__file__).parent / "data" / "games.pgn.zst"
WALKED_GAMES: Final = 20_000  # games of a corpus up to which all of them are walked: a second or two
LONGEST_GAME: Final = 600  # plies: beyond nearly every game between people; a text longer than that fits no context
MOST_PIECES: Final = 10  # of a start: at least 5 % of random placements are legal then (fewest: KQQQQQQQQK, 6 %) ...
MOST_PLACEMENTS: Final = 1_024  # ... so that as many in a row fail with probability 1e-23
_START: Final = re.compile("K[QRBNP]*K[QRBNP]*")
_PIECES: Final = {"P": 1, "N": 2, "B": 3, "R": 4, "Q": 5, "K": 6}
_EDGE_RANKS: Final = (0, 7)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedGames:
    """The games between masters that ship with the project (data/README.md has their origin): about 1,500."""

    revision: ClassVar[int] = 1

    def draw(self, rng: Generator, count: int) -> list[Game]:
        games = _shipped()
        return [games[place] for place in rng.integers(len(games), size=count).tolist()]

    def games(self) -> Iterable[Game] | None:
        return _shipped()

    @property
    def count(self) -> int | None:
        return len(_shipped())

    def describe(self) -> str:
        return f"{len(_shipped())} games between masters, shipped with the project"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusGames:
    """The games of a corpus on disk (``stagecraft corpus`` makes one of PGN files), read where they lie.

    Only the pages that are read come into memory, so a corpus may be larger than that. One of at most 20,000 games can
    be walked, so that a task knows its capacity.
    """

    revision: ClassVar[int] = 1

    corpus: GameCorpus
    """The corpus, such as ``corpus_named("games", "lichess-2013")``: its name and the digest of its content."""

    def draw(self, rng: Generator, count: int) -> list[Game]:
        return [self.corpus[place] for place in rng.integers(len(self.corpus), size=count).tolist()]

    def games(self) -> Iterable[Game] | None:
        return self.corpus if len(self.corpus) <= WALKED_GAMES else None

    @property
    def count(self) -> int | None:
        return len(self.corpus)

    def describe(self) -> str:
        return f"the {len(self.corpus)} games of the corpus {self.corpus.name!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfPlay:
    """Games of a policy against itself: any number of them, from nothing but ``rng``.

    The policies count material: ``greedy`` sees its own move alone, ``one_ply`` the reply too, ``two_ply`` its own move
    after that; ``random`` plays any legal move. Of equally good moves each is as likely. A game ends with mate,
    stalemate, too little material, the third repetition or fifty moves, or after ``most_plies``.
    """

    revision: ClassVar[int] = 1

    policy: Policy = "random"
    """How moves are chosen."""
    noise: float = 0.0
    """Probability that a move is drawn from all legal ones instead."""
    most_plies: int = 200
    """Longest game, 1 to 600 moves of one side."""
    start: str = "usual"
    """``usual``, or the pieces of White and then of Black, such as ``KRPKR``: each game starts from a random legal
    position with these pieces, with either side to move, in which the side to move can move."""

    def __post_init__(self) -> None:
        if self.policy not in get_args(Policy):
            raise ValueError(f"SelfPlay.policy must be one of {', '.join(get_args(Policy))}, got {self.policy!r}")
        _check_noise("SelfPlay.noise", self.noise)
        _check_plies("SelfPlay.most_plies", self.most_plies)
        if self.start != "usual":
            _check_start(self.start)

    def draw(self, rng: Generator, count: int) -> list[Game]:
        seeds = rng.integers(2**63, size=count).tolist()
        return [self._game(seed, rng) for seed in seeds]

    def games(self) -> Iterable[Game] | None:
        return None

    @property
    def count(self) -> int | None:
        return None

    def describe(self) -> str:
        noise = f", {self.noise:.0%} of its moves random" if self.noise and self.policy != "random" else ""
        start = "" if self.start == "usual" else f", from random positions of {self.start}"
        return f"self-play of the policy {self.policy}{noise}{start}"

    def _game(self, seed: int, rng: Generator) -> Game:
        first, start = _usual_state(), None
        if self.start != "usual":
            first = _placed(self.start, rng)
            start = rules.board_of_state(first).fen()
        policy = get_args(Policy).index(self.policy)
        moves = rules.self_play(seed, first.copy(), policy, self.noise, self.most_plies)
        played = tuple(int(move) for move in moves)
        return Game(start=start, moves=played, result=_result(first, played))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stockfish:
    """Games of Stockfish against itself, where it is installed (``apt-get install stockfish``); nothing else needs it.

    One thread, a fixed number of nodes for each move and an empty hash table for each game: the same engine plays the
    same games. Its skill levels and its limited Elo draw from the clock, so they are not offered; fewer nodes and
    noise make it weaker. Games differ by their first moves, which are random, and by noise.
    """

    revision: ClassVar[int] = 1

    nodes: int = 1_000
    """Positions that are searched for each move."""
    noise: float = 0.0
    """Probability that a move is drawn from all legal ones instead."""
    opening: int = 8
    """Random moves with which each game begins."""
    most_plies: int = 200
    """Longest game, 1 to 600 moves of one side."""
    version: str | None = None
    """What the engine must call itself, such as ``Stockfish 16.1``; None: any, and then another machine may play other
    games."""

    def __post_init__(self) -> None:
        if type(self.nodes) is not int or self.nodes < 1:
            raise ValueError(f"Stockfish.nodes must be a whole number of at least 1, got {self.nodes!r}")
        _check_noise("Stockfish.noise", self.noise)
        _check_plies("Stockfish.most_plies", self.most_plies)
        if type(self.opening) is not int or not 0 <= self.opening < self.most_plies:
            raise ValueError(
                f"Stockfish.opening must be a whole number from 0 to most_plies - 1 = {self.most_plies - 1},"
                f" got {self.opening!r}"
            )

    def draw(self, rng: Generator, count: int) -> list[Game]:
        """Games as the engine plays them.

        Raises:
            ValueError: where there is no engine, or one of another version.
        """
        with _engine(self.version) as engine:
            return [self._game(engine, rng) for _ in range(count)]

    def games(self) -> Iterable[Game] | None:
        return None

    @property
    def count(self) -> int | None:
        return None

    def describe(self) -> str:
        return f"games of {self.version or 'the installed Stockfish'} at {self.nodes} nodes a move"

    def _game(self, engine: chess.engine.SimpleEngine, rng: Generator) -> Game:
        board = chess.Board()
        this_game = object()  # another object tells the engine to forget the game before
        while len(board.move_stack) < self.most_plies and not board.is_game_over(claim_draw=True):
            if len(board.move_stack) < self.opening or rng.random() < self.noise:
                legal = list(board.legal_moves)
                move = legal[int(rng.integers(len(legal)))]
            else:
                played = engine.play(board, chess.engine.Limit(nodes=self.nodes), game=this_game).move
                if played is None:
                    raise ValueError(f"the engine gave no move in {board.fen()}; install another version of Stockfish")
                move = played
            board.push(move)
        moves = tuple(rules.encode(move) for move in board.move_stack)
        return Game(start=None, moves=moves, result=board.result(claim_draw=True))


@contextmanager
def _engine(version: str | None) -> Iterator[chess.engine.SimpleEngine]:
    """The engine on the search path, with all that could make it play otherwise another time switched off."""
    path = shutil.which("stockfish")
    if path is None:
        raise ValueError(
            "Stockfish is not installed: there is no 'stockfish' on the search path; apt-get install stockfish, or take"
            " games from SelfPlay"
        )
    with chess.engine.SimpleEngine.popen_uci(path) as engine:
        name = engine.id.get("name", "an engine without a name")
        if version is not None and version != name:
            raise ValueError(f"Stockfish.version is {version!r} and {path} is {name!r}; install that one, or say so")
        engine.configure({key: value for key, value in (("Threads", 1), ("Hash", 16)) if key in engine.options})
        yield engine


@lru_cache(maxsize=1)
def _shipped() -> tuple[Game, ...]:
    return tuple(_once(read_games(SHIPPED)))


def _once(games: Iterable[Game]) -> Iterator[Game]:
    """The games without those whose moves came before."""
    seen: set[tuple[str | None, tuple[int, ...]]] = set()
    for game in games:
        if (game.start, game.moves) not in seen:
            seen.add((game.start, game.moves))
            yield game


# ------------------------------------------------------------------------------------------------------- positions


@lru_cache(maxsize=1)
def _usual_state() -> rules.State:
    return rules.state_of(chess.Board())


def _placed(pieces: str, rng: Generator) -> rules.State:
    """A random legal position with these pieces, in which the side to move has a move: uniform over all of them."""
    for _ in range(MOST_PLACEMENTS):
        state = _placement(pieces, rng)
        if state is not None:
            return state
    raise ValueError(f"{pieces} stood in no legal position in {MOST_PLACEMENTS} tries; take fewer pieces")


def _placement(pieces: str, rng: Generator) -> rules.State | None:
    """The pieces on random squares; None where that is no legal position, or one without a move."""
    squares = rng.choice(64, size=len(pieces), replace=False).tolist()
    white = pieces.index("K", 1)
    state = np.zeros(68, np.int8)
    state[64], state[66] = 1 - 2 * int(rng.integers(2)), -1
    for place, (letter, square) in enumerate(zip(pieces, squares, strict=True)):
        if letter == "P" and square // 8 in _EDGE_RANKS:
            return None
        state[square] = _PIECES[letter] if place < white else -_PIECES[letter]
    if chess.square_distance(squares[0], squares[white]) < 2 or _can_take_king(state):  # they touch
        return None
    if not rules.legal_moves(state, np.empty(256, np.uint16)):
        return None
    return state if not rules.in_check(state) or rules.board_of_state(state).is_valid() else None  # three give no check


def _can_take_king(state: rules.State) -> bool:
    """Whether the side that is not to move stands in check."""
    other = state.copy()
    other[64] = -other[64]
    return bool(rules.in_check(other))


def _result(first: rules.State, moves: Iterable[int]) -> str:
    """How a game ended by its last position alone: draws by repetition or by fifty moves are unfinished here."""
    state = first.copy()
    for move in moves:
        rules.play(state, move)
    ended = rules.status(state)
    if ended == 1:
        return "0-1" if state[64] > 0 else "1-0"  # the side to move is mated
    return "1/2-1/2" if ended else "*"


# ------------------------------------------------------------------------------------------------------ validation


def _check_noise(where: str, noise: object) -> None:
    if type(noise) not in (int, float) or not 0 <= float(noise) <= 1:  # type: ignore[arg-type]  # just checked
        raise ValueError(f"{where} must be a probability from 0 to 1, got {noise!r}")


def _check_plies(where: str, plies: object) -> None:
    if type(plies) is not int or not 1 <= plies <= LONGEST_GAME:
        raise ValueError(f"{where} must be a whole number from 1 to {LONGEST_GAME}, got {plies!r}")


def _check_start(start: object) -> None:
    if not isinstance(start, str) or not _START.fullmatch(start) or not len("KQK") <= len(start) <= MOST_PIECES:
        raise ValueError(
            f"SelfPlay.start must be 'usual' or the pieces of White and of Black, each with its king first and 3 to"
            f" {MOST_PIECES} in all, such as 'KRPKR'; got {start!r}"
        )
