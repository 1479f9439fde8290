"""Games of chess as text: what a policy is pretrained on.

Texts (white space between symbols is free, and means nothing):

============  ===============================  ===================================================================
what          example                          grammar
============  ===============================  ===================================================================
prompt        ``RNBQ... white KQkq - >``       ``[HEADER] ">" MOVE*``: the position, then the moves that are given
completion    ``P e2 e4 P e7 e5 N g1 f3``      ``MOVE+`` in the notation, from the position at the end of the prompt
============  ===============================  ===================================================================

Headers are those of positions.py, notations those of notation.py. A completion is right if it is 1 to 600 legal moves,
played one after the other: a game has no solution, so the verdict says whether the policy knows the rules.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import ClassVar, Final

import chess
import numpy as np
from numpy.random import Generator

from testbeds.chess import rules
from testbeds.chess.boards import board_text, chess_picture
from testbeds.chess.game_texts import header_of, legal_texts, move_texts, state_after
from testbeds.chess.games import Game, GameSource, check_game_source
from testbeds.chess.notation import BETWEEN, Notation, check_notation, read_line, symbols
from testbeds.chess.positions import START, Header, check_header, header_symbols
from testbeds.chess.sources import LONGEST_GAME, SelfPlay, ShippedGames
from testbeds.core import Choice, Problem, Step, Task, Trace, TraceStyle, Verdict
from testbeds.grid_worlds import best_constant, malformed, right, wrong
from testbeds.streams import seed_from_key

BARREN_DRAWS: Final = 64  # draws in a row without one game that has a window after which the source is refused
CACHED_WINDOWS: Final = 1 << 14  # problems and their texts: all of the shipped sample in windows of 16 moves, 50 MB

Span = tuple[int, int]
"""A window of a game: the index of its first move and of the first one after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameWindow:
    """Certificate: the game and which of its moves are the problem's."""

    game: Game
    ply: int
    """Moves of the game before the window."""
    until: int
    """Moves of the game up to the window's end."""
    given: int
    """Moves of the window that stand in the prompt."""

    def position_hashes(self) -> tuple[int, ...]:
        """The canonical hashes of all positions of the window: the first and the one after each move."""
        state = _start_of(self)
        hashes = [int(rules.canonical_hash(state))]
        for move in self.game.moves[self.ply : self.until]:
            rules.play(state, move)
            hashes.append(int(rules.canonical_hash(state)))
        return tuple(hashes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChessGames:
    """Games of chess, whole or in windows of some moves: the text of pretraining, and the test of knowing the rules.

    A problem is a window of a game: with ``plies`` a game is cut from its start into windows of so many moves, the last
    one shorter. A game is drawn from the source and then one of its windows, uniformly. The key says the game (by its
    start and its moves) and the window, the family is the game: so all of a game is in one split. Games differ and
    still share positions, such as the openings; the predicate ``Reaches`` (reaches.py) keeps those games out of
    training that reach a position of an evaluation.

    Left out are windows with no more moves than are ``given``; without a header, games that start elsewhere than usual;
    and without windows, games of more than 600 moves of one side.

    A demonstration is the rest of the window as it was played, a step for each move; there is no other style. Any legal
    moves are accepted, and one is enough: the floor is blind to the position, and says how often the move that is legal
    most often is so, counted on 500 fixed problems of the task, and so high by the luck of the best in that sample (of
    the order of 0.01). It is 1 where every prompt is the usual start.
    """

    revision: ClassVar[int] = 1
    key_note: ClassVar[str] = "the game, by its start and its moves, and which of its moves the problem has"

    source: GameSource = ShippedGames()
    """Where the games come from."""
    notation: Notation = "long_algebraic"
    """How moves are written."""
    header: Header | None = "squares"
    """How the position is written from which a window starts; None: not at all."""
    plies: int | None = 16
    """Moves of one side in a window at most; None: a text is a whole game."""
    given: int = 0
    """Moves of the window that stand in the prompt."""

    def __post_init__(self) -> None:
        check_notation("ChessGames.notation", self.notation)
        if self.header is not None:
            check_header("ChessGames.header", self.header)
        check_game_source("ChessGames.source", self.source, such_as="ShippedGames()")
        _check_window(self.plies, self.given)
        if self.header is None and self.plies is not None:
            raise ValueError(
                f"ChessGames.plies={self.plies} cuts games into windows, which start in the middle: a header must say"
                f" where; give header='squares' or 'pieces', or plies=None for whole games"
            )
        if self.header is None and isinstance(self.source, SelfPlay) and self.source.start != "usual":
            raise ValueError(
                f"ChessGames without a header has games from the usual start alone, got {self.source!r}; give"
                f" header='squares' or 'pieces'"
            )

    @property
    def symbols(self) -> tuple[str, ...]:
        head = (START,) if self.header is None else header_symbols(self.header)
        return tuple(dict.fromkeys((*head, *symbols(self.notation))))

    @property
    def instructions(self) -> str:
        return (
            f"This is a game of chess. {_EXPLAINED_HEADERS[self.header]} Then come the moves that have been played"
            f" since, if there are any. {_EXPLAINED_NOTATIONS[self.notation]} White space means nothing. Continue the"
            f" game: answer with 1 to {LONGEST_GAME} moves, one after the other, for both sides in turn. The answer is"
            f" right if every move is legal."
        )

    @property
    def capacity(self) -> int | None:
        return _capacity(self)

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        problems: list[Problem] = []
        barren = 0
        while len(problems) < count:
            games = self.source.draw(rng, count - len(problems))
            places = rng.random(len(games)).tolist()
            found = [(game, place) for game, place in zip(games, places, strict=True) if self._windows(game)]
            problems += [_problem(self, game, self._span(game, place)) for game, place in found]
            barren = 0 if found else barren + 1
            if barren == BARREN_DRAWS:
                raise ValueError(
                    f"{barren} draws in a row from {self.source.describe()} gave no game with a window for {self!r};"
                    f" give fewer moves, or take longer games"
                )
        return problems

    def enumerate(self) -> Iterable[Problem] | None:
        games = self.source.games()
        return None if games is None else self._all(games)

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """The rest of the window, as it was played."""
        if style.granularity != "explicit" or style.order != "forward" or style.search != "optimal" or style.heuristic:
            raise ValueError(
                f"ChessGames writes games as they were played, in the style 'explicit' alone, got {style.name!r}"
            )
        return _played(_certificate(problem), self.notation)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict by the rules at the top of this file.

        ``progress`` is the number of legal moves before the first that is not, divided by the number of moves said; 0
        for a text that is not moves.
        """
        own = _certificate(problem)
        tight = "".join(completion.split())
        played = _played(own, self.notation)
        if tight == "".join(played.text.split()):
            return right(f"{len(played.steps)} legal moves, as they were played")
        line = read_line(self.board(problem), tight, self.notation, LONGEST_GAME)
        if not line.well_formed:
            return malformed(line.trouble)
        if line.trouble:
            return wrong(line.trouble, len(line.moves) / line.said)
        return right(f"{len(line.moves)} legal moves")

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        """None: any legal moves are right, and these are too many to list."""
        return None

    def floor(self, problem: Problem) -> float:
        return _floor(self)

    def board(self, problem: Problem) -> chess.Board:
        """The position at the end of the prompt; its clocks are at their start."""
        return rules.board_of_state(_end_of_prompt(_certificate(problem)))

    def choices(self, problem: Problem) -> tuple[Choice, ...]:
        """Every legal move: all of them are correct."""
        return tuple(
            Choice(
                text=text,
                kinds=("correct",),
                arrow=(chess.SQUARE_NAMES[move & 63], chess.SQUARE_NAMES[move >> 6 & 63]),
            )
            for move, text in legal_texts(_end_of_prompt(_certificate(problem)), self.notation)
        )

    def drawing(self, problem: Problem) -> str:
        """The position at the end of the prompt as a board of letters with the names of ranks and files."""
        return board_text(self.board(problem))

    def picture(self, problem: Problem, probabilities: Sequence[tuple[Choice, float]]) -> str | None:
        """The board with the likeliest moves as arrows."""
        return chess_picture(self, problem, probabilities)

    def shown(self, problem: Problem) -> tuple[int, ...]:
        """What training on a problem shows: its game, and all positions of its window."""
        return (*self.asked(problem), *_certificate(problem).position_hashes())

    def asked(self, problem: Problem) -> tuple[int, ...]:
        """What evaluating on a problem asks: its game."""
        return (seed_from_key("problem key", problem.cut),)

    def _windows(self, game: Game) -> int:
        """How many windows a game has."""
        length = len(game.moves)
        if self.header is None and game.start is not None:
            return 0
        if self.plies is None:
            return int(self.given < length <= LONGEST_GAME)
        whole, rest = divmod(length, self.plies)
        return whole + (rest > self.given)

    def _span(self, game: Game, place: float) -> Span:
        """The window that lies at a place in [0, 1) among those of a game."""
        return self._window(game, int(place * self._windows(game)))

    def _window(self, game: Game, number: int) -> Span:
        if self.plies is None:
            return 0, len(game.moves)
        return number * self.plies, min((number + 1) * self.plies, len(game.moves))

    def _all(self, games: Iterable[Game]) -> Iterator[Problem]:
        for game in games:
            for number in range(self._windows(game)):
                yield _problem(self, game, self._window(game, number))


def _certificate(problem: Problem) -> GameWindow:
    if not isinstance(problem.certificate, GameWindow):
        raise TypeError(
            f"ChessGames reads problems with a GameWindow, got {type(problem.certificate).__name__}; ask the task that"
            f" made the problem"
        )
    return problem.certificate


@lru_cache(maxsize=CACHED_WINDOWS)
def _problem(task: ChessGames, game: Game, span: Span) -> Problem:
    ply, until = span
    own = GameWindow(game=game, ply=ply, until=until, given=task.given)
    start = _start_of(own)
    given = game.moves[ply : ply + task.given]
    state = state_after(start, given)
    head = [] if task.header is None else [header_of(start, task.header)]
    said = [BETWEEN[task.notation].join(move_texts(start, given, task.notation))] if given else []
    family = f"chess game:{_digest(game)}"
    return Problem(
        prompt=" ".join([*head, START, *said]),
        key=f"{family}:{ply}-{until}:{task.given}",
        certificate=own,
        features={
            "plies": until - ply,
            "pieces": int(np.count_nonzero(state[:64])),
            "ply": ply,
            "legal_moves": int(rules.legal_moves(state, np.empty(256, np.uint16))),
        },
        family=family,
    )


def _digest(game: Game) -> str:
    """32 hexadecimal digits of a game's start and moves."""
    hasher = blake2b((game.start or "").encode(), digest_size=16)
    hasher.update(array("H", game.moves).tobytes())
    return hasher.hexdigest()


def _start_of(own: GameWindow) -> rules.State:
    """The state in which the window starts."""
    return state_after(_first_state(own.game.start), own.game.moves[: own.ply])


def _end_of_prompt(own: GameWindow) -> rules.State:
    """The state from which a completion is played."""
    return state_after(_first_state(own.game.start), own.game.moves[: own.ply + own.given])


@lru_cache(maxsize=64)  # hardly more than the usual one repeats
def _first_state(start: str | None) -> rules.State:
    return rules.state_of(chess.Board() if start is None else chess.Board(start))


@lru_cache(maxsize=CACHED_WINDOWS)
def _played(own: GameWindow, notation: Notation) -> Trace:
    """The rest of the window as it was played."""
    texts = move_texts(_end_of_prompt(own), own.game.moves[own.ply + own.given : own.until], notation)
    separator = BETWEEN[notation]
    steps = tuple([Step(operation=text, result=text, text=text) for text in texts])
    whole = separator.join(texts)
    return Trace(steps=steps, text=whole, answer=whole, separator=separator)


@lru_cache(maxsize=64)
def _floor(task: ChessGames) -> float:
    if task.header is None and task.given == 0:
        return 1.0  # every prompt is the usual start
    return best_constant(task, lambda problem: _answers(task, problem))


def _answers(task: ChessGames, problem: Problem) -> list[str]:
    """Every legal move, without the marks that depend on more of the position; longer answers are legal less often."""
    return [text for _, text in legal_texts(_end_of_prompt(_certificate(problem)), task.notation, marked=False)]


@lru_cache(maxsize=64)
def _capacity(task: ChessGames) -> int | None:
    games = task.source.games()
    return None if games is None else sum(task._windows(game) for game in games)


# ------------------------------------------------------------------------------------------------------ validation


def _check_window(plies: object, given: object) -> None:
    if plies is not None and (type(plies) is not int or not 1 <= plies <= LONGEST_GAME):
        raise ValueError(f"ChessGames.plies must be None or a whole number from 1 to {LONGEST_GAME}, got {plies!r}")
    most = (LONGEST_GAME if plies is None else int(str(plies))) - 1
    if type(given) is not int or not 0 <= given <= most:
        raise ValueError(
            f"ChessGames.given must be a whole number from 0 to {most}, so that a window has moves left to say,"
            f" got {given!r}"
        )


_SQUARES_EXPLAINED: Final = (
    "The prompt shows a position: 64 symbols for the squares from a8 to h1, rank by rank, with the pieces of White in"
    ' capital letters, those of Black in small ones and "." for an empty square; then the side to move; then four'
    ' symbols for the castling rights K Q k q, "-" where there is none; then the square on which a pawn can be taken en'
    ' passant, or "-". The mark ">" ends the position.'
)
_PIECES_EXPLAINED: Final = (
    'The prompt shows a position: the pieces of White with their squares, then those of Black, then after ":" the side'
    " to move, the castling rights K Q k q that there are, and the square on which a pawn can be taken en passant, if"
    ' there is one. The mark ">" ends the position.'
)
_EXPLAINED_HEADERS: Final[dict[Header | None, str]] = {
    "squares": _SQUARES_EXPLAINED,
    "pieces": _PIECES_EXPLAINED,
    None: 'The prompt begins with the mark ">", which is the usual start of a game.',
}
_EXPLAINED_NOTATIONS: Final[dict[Notation, str]] = {
    "long_algebraic": (
        'A move is written as the piece (P N B R Q K), the square that it leaves, "x" if it takes, and the square that'
        ' it reaches, such as "P e2 e4" or "N f3 x d4"; a promotion adds "=" and the piece; castling is "O-O" or'
        ' "O-O-O"; a check may end in "+" and a mate in "#".'
    ),
    "uci_squares": (
        'A move is written as the square that a piece leaves and the one that it reaches, such as "e2 e4"; castling as'
        ' the king\'s move; a promotion adds the piece in a small letter, such as "e7 e8 q".'
    ),
    "uci_moves": (
        'A move is one symbol: the square that a piece leaves and the one that it reaches, such as "e2e4"; castling is'
        ' the king\'s move; a promotion adds the piece in a small letter, such as "e7e8q".'
    ),
    "san": (
        'Moves are written in standard algebraic notation, such as "Nf3" or "exd5" or "O-O", with ";" between two of'
        " them."
    ),
}


TESTBED: Final[type[Task]] = ChessGames
LEVELS: Final[dict[str, Task]] = {
    "shipped": ChessGames(),
    "whole": ChessGames(header=None, plies=None),
    "endings": ChessGames(source=SelfPlay(policy="greedy", noise=0.2, most_plies=64, start="KRPKR"), header="pieces"),
    "self_play": ChessGames(source=SelfPlay(most_plies=120)),
}
