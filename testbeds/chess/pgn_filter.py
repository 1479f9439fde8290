"""Which games of a file are wanted, judged by their tags, result and length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

Speed = Literal["ultrabullet", "bullet", "blitz", "rapid", "classical", "correspondence"]
SPEEDS: Final[tuple[Speed, ...]] = get_args(Speed)
RESULTS: Final = ("1-0", "0-1", "1/2-1/2", "*")
USUAL_MOVES: Final = 40
"""Moves of a game for which time controls are compared, as Lichess does."""

_FASTER_THAN_S = (30, 180, 480, 1500, 21_600)  # Lichess' limits between the speeds; the last is six hours of live play


@dataclass(frozen=True, slots=True, kw_only=True)
class GameFilter:
    """What a game must have to be read; as declared here, every game passes.

    A game whose Elo or time control is not known ("?", "-", 0, no tag) does not pass a filter that asks for it, unless
    ``unknown`` says so.
    """

    min_elo: int | None = None
    """Least Elo of the weaker player."""
    max_elo: int | None = None
    """Greatest Elo of the stronger player."""
    results: tuple[str, ...] = RESULTS
    min_plies: int = 1
    max_plies: int | None = None
    min_seconds: float | None = None
    """Least estimated time of one player for 40 moves: 180+2 is 180 + 40 * 2 s, 40/7200 is 7200 s."""
    max_seconds: float | None = None
    speeds: tuple[Speed, ...] = ()
    """Classes of that estimate with Lichess' limits: ultrabullet < 30 s, bullet < 180 s, blitz < 480 s, rapid < 1500 s,
    classical < 6 h, correspondence. Empty: any."""
    event: str = ""
    """Text that the Event tag must contain, in any case: such as ``rated`` for Lichess' rated games."""
    unknown: bool = False
    """Whether games pass whose Elo or time control a filter asks for and the file does not tell."""

    def __post_init__(self) -> None:
        if not self.results or set(self.results) - set(RESULTS):
            raise ValueError(f"GameFilter.results must be some of {', '.join(RESULTS)}, got {self.results!r}")
        if set(self.speeds) - set(SPEEDS):
            raise ValueError(f"GameFilter.speeds must be some of {', '.join(SPEEDS)}, got {self.speeds!r}")
        if self.min_plies < 1:
            raise ValueError(f"GameFilter.min_plies must be at least 1, got {self.min_plies}")
        for name, low, high in (
            ("elo", self.min_elo, self.max_elo),
            ("plies", self.min_plies, self.max_plies),
            ("seconds", self.min_seconds, self.max_seconds),
        ):
            for bound in (low, high):
                if bound is not None and not bound >= 0:  # NaN is refused, too
                    raise ValueError(f"GameFilter: bounds of {name} must be numbers of at least 0, got {bound}")
            if low is not None and high is not None and low > high:
                raise ValueError(f"GameFilter.min_{name} ({low}) must not be above max_{name} ({high})")

    def refusal_of_tags(self, tags: Mapping[bytes, bytes]) -> str | None:
        """Why a game with these tags is not wanted; None if it is."""
        if self.event and self.event.lower() not in tags.get(b"Event", b"").decode("utf-8", "replace").lower():
            return "filter: event"
        if (self.min_elo is not None or self.max_elo is not None) and not self._elo_passes(elos(tags)):
            return "filter: Elo"
        timed = self.min_seconds is not None or self.max_seconds is not None or self.speeds
        if timed and not self._time_passes(estimated_seconds(tags.get(b"TimeControl", b""))):
            return "filter: time control"
        return None

    def refusal_of_result(self, result: str) -> str | None:
        """Why a game with this result is not wanted."""
        return None if result in self.results else "filter: result"

    def refusal_of_length(self, plies: int) -> str | None:
        """Why a game of so many moves of both players is not wanted."""
        wanted = self.min_plies <= plies and (self.max_plies is None or plies <= self.max_plies)
        return None if wanted else "filter: length"

    def _elo_passes(self, both: tuple[int, int]) -> bool:
        known = [elo for elo in both if elo]
        if len(known) < len(both) and not self.unknown:
            return False
        return all(_within(elo, self.min_elo, self.max_elo) for elo in known)

    def _time_passes(self, seconds: float | None) -> bool:
        if seconds is None:
            return self.unknown
        if self.speeds and speed_of(seconds) not in self.speeds:
            return False
        return _within(seconds, self.min_seconds, self.max_seconds)


EVERY_GAME: Final = GameFilter()


def elos(tags: Mapping[bytes, bytes]) -> tuple[int, int]:
    """Elo of White and Black; 0 where it is not known."""
    return _elo(tags.get(b"WhiteElo", b"")), _elo(tags.get(b"BlackElo", b""))


def estimated_seconds(control: bytes) -> float | None:
    """Time of one player for 40 moves, in seconds, by the first period of a TimeControl tag; None if not known.

    ``600`` and ``600+5`` are seconds for the game and for each move, ``40/7200`` is moves and their seconds, ``*60`` is
    seconds for each move.
    """
    period = control.partition(b":")[0].strip()
    moves, found, rest = period.partition(b"/")
    base, _, increment = (rest if found else period).partition(b"+")
    share = _whole(moves) if found else USUAL_MOVES
    if not found and period.startswith(b"*"):
        base, share = period[1:], 1
    seconds, bonus = _whole(base), _whole(increment or b"0")
    if seconds is None or bonus is None or not share:
        return None
    return seconds * USUAL_MOVES / share + bonus * USUAL_MOVES


def speed_of(seconds: float) -> Speed:
    """The class of an estimated time."""
    return SPEEDS[sum(seconds >= limit for limit in _FASTER_THAN_S)]


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _elo(text: bytes) -> int:
    number = _whole(text.strip())
    return number if number is not None and number < 10_000 else 0  # no rating has five digits


def _whole(text: bytes) -> int | None:
    """The number that ASCII digits write."""
    return int(text) if text.isdigit() and len(text) <= 12 else None
