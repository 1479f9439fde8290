r"""Where games begin and end in a PGN text, and the moves of one game without all that is said about them.

Both kernels read bytes, so that no encoding of names matters, with ``\n`` at the end of every line. What begins and
ends a game (differences from ``chess.pgn`` are marked *):

* Lines of tags, then movetext up to a blank line outside comments. Blank lines may stand between tags and movetext*.
* A tag line outside comments ends the movetext, with or without a blank line before it*.
* A blank line, then a tag of the name that the game's first tag has, or ``Event``, begins a game: among tags*, and in
  a comment, which was never finished then*.
* Lines that begin with ``%``, and ``;`` to the end of its line, are comments.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

WHOLE: Final = 0
OPEN_COMMENT: Final = 1
OPEN_VARIATION: Final = 2
NULL_MOVE: Final = 3
DROP: Final = 4
AFTER_RESULT: Final = 5

NO_RESULT: Final = -1
WHITE_WON: Final = 0
BLACK_WON: Final = 1
DRAWN: Final = 2
UNKNOWN: Final = 3

_MORE: Final = -1  # the answer lies behind the end of what has been read
_NEWLINE, _SPACE, _HASH, _PERCENT = ord("\n"), ord(" "), ord("#"), ord("%")
_OPEN, _CLOSE, _LEFT, _RIGHT, _REST = ord("{"), ord("}"), ord("("), ord(")"), ord(";")
_TAG, _NAG, _GOOD, _POOR, _STAR = ord("["), ord("$"), ord("!"), ord("?"), ord("*")
_ZERO, _ONE, _TWO, _EIGHT, _NINE = ord("0"), ord("1"), ord("2"), ord("8"), ord("9")
_DOT, _DASH, _SLASH, _EQUALS, _AT = ord("."), ord("-"), ord("/"), ord("="), ord("@")
_CASTLES, _ZED = ord("O"), ord("Z")
_EVENT = np.frombuffer(b"[Event ", np.uint8)
_PIECES = np.frombuffer(b"NBRQKnbrqk", np.uint8)
_ENDS_TOKEN = np.zeros(256, np.bool_)
_ENDS_TOKEN[[ord(c) for c in " \t\n\r\v\f{}();$!?*"]] = True


@njit(cache=True)
def cut(text: Bytes, at_end: bool, spans: NDArray[np.int64]) -> tuple[int, int]:  # noqa: FBT001  # numba's positional call
    """The games that are whole in a text, a row each: begin, begin of the movetext, end, and trouble.

    Args:
        text: Lines that end in a newline, and two newlines at the very end where that is the file's; else the last
            line may be cut off.
        at_end: Whether nothing follows.
        spans: Rows to fill. If all are filled, there may be more games: call again with the rest.

    Returns:
        The number of games, and where the first game begins that is not among them.
    """
    position, count = 0, 0
    while count < len(spans):
        begin = _first_line(text, position)
        if begin == _MORE:
            return count, len(text) if at_end else position
        position = begin
        body = _tags_end(text, begin, at_end)
        if body == _MORE:
            break
        end, trouble = _movetext_end(text, body, begin, at_end)
        if end == _MORE:
            break
        spans[count, 0], spans[count, 1], spans[count, 2], spans[count, 3] = begin, body, end, trouble
        count += 1
        position = end
    return count, position


@njit(cache=True)
def clean(text: Bytes, begin: int, end: int, out: Bytes) -> tuple[int, int, int, int]:
    """Writes the moves of the movetext ``text[begin:end]`` into ``out``, a space behind each.

    Comments, variations, annotations, numbers and words without a move are left out, marks of check and annotations
    behind a move as well; castling has the letter O. ``out`` must be as long as the text and one more.

    Returns:
        Bytes written, number of moves, the result or ``NO_RESULT``, and the first trouble, or ``WHOLE``.
    """
    written, plies, depth, result = 0, 0, 0, NO_RESULT
    position, fresh = begin, True
    while position < end:
        byte = text[position]
        skipped = _comment(text, position, end, fresh)
        if skipped > position:
            position = skipped
            continue
        fresh = byte == _NEWLINE
        if _ENDS_TOKEN[byte] and byte != _STAR:
            depth = max(depth + (byte == _LEFT) - (byte == _RIGHT), 0)
            position = _after_mark(text, position, end)
            continue
        stop = _token_end(text, position, end)
        if depth == 0:
            found = _result(text, position, stop)
            if found != NO_RESULT:
                result = found
            else:
                wrote, trouble = _move(text, position, stop, out, written)
                if trouble == WHOLE and wrote and result != NO_RESULT:
                    trouble = AFTER_RESULT
                if trouble != WHOLE:
                    return written, plies, result, trouble
                written += wrote
                plies += wrote > 0
        position = stop
    return written, plies, result, OPEN_VARIATION if depth else WHOLE


@njit(cache=True)
def _next_line(text: Bytes, position: int) -> int:
    """Where the next line begins."""
    size = len(text)
    while position < size:
        if text[position] == _NEWLINE:
            return position + 1
        position += 1
    return _MORE


@njit(cache=True)
def _blank(text: Bytes, position: int) -> bool:
    """Whether the line that begins here is whole and blank."""
    size = len(text)
    while position < size:
        byte = text[position]
        if byte == _NEWLINE:
            return True
        if byte != _SPACE and not 9 <= byte <= 13:  # tab to carriage return
            return False
        position += 1
    return False


@njit(cache=True)
def _first_line(text: Bytes, position: int) -> int:
    """The first line from here that is neither blank nor a comment."""
    while 0 <= position < len(text):
        byte = text[position]
        if byte not in (_PERCENT, _REST) and not _blank(text, position):
            return position
        position = _next_line(text, position)
    return _MORE


@njit(cache=True)
def _tags_end(text: Bytes, begin: int, at_end: bool) -> int:  # noqa: FBT001
    """Where the movetext begins: or what stands in its place, if there is none."""
    position = begin
    while 0 <= position < len(text):
        if text[position] in (_TAG, _PERCENT, _REST):
            position = _next_line(text, position)
        elif _blank(text, position):
            following = _first_line(text, position)
            if following == _MORE or _next_line(text, following) == _MORE:
                return position if at_end else _MORE
            if text[following] != _TAG:
                return following
            if _begins_game(text, following, begin):
                return position
            position = following
        else:
            return position
    return len(text) if at_end else _MORE


@njit(cache=True)
def _begins_game(text: Bytes, line: int, first: int) -> bool:
    """Whether the whole line is a tag that begins a game, after one whose first line is ``first``."""
    if _same_word(text, line, _EVENT, 0):
        return True
    return text[first] == _TAG and _same_word(text, line, text, first)


@njit(cache=True)
def _same_word(text: Bytes, position: int, other: Bytes, begin: int) -> bool:
    """Whether both have the same bytes up to and with the first space."""
    while position < len(text) and begin < len(other) and text[position] == other[begin]:
        if text[position] == _SPACE:
            return True
        if text[position] == _NEWLINE:
            return False
        position += 1
        begin += 1
    return False


@njit(cache=True)
def _movetext_end(text: Bytes, position: int, begin: int, at_end: bool) -> tuple[int, int]:  # noqa: FBT001
    """Where the movetext from ``position`` ends, and trouble."""
    fresh = True
    while position < len(text):
        byte = text[position]
        if fresh and (_blank(text, position) or _is_tag(text, position)):
            return position, WHOLE
        if byte == _REST or (fresh and byte == _PERCENT):
            line = _next_line(text, position)
            position = len(text) if line == _MORE else line
            fresh = True
        elif byte == _OPEN:
            fresh = False
            position, trouble = _comment_end(text, position, begin, at_end)
            if trouble != WHOLE or position == _MORE:
                return position, trouble
        else:
            fresh = byte == _NEWLINE
            position += 1
    return (len(text) if at_end else _MORE), WHOLE


@njit(cache=True)
def _is_tag(text: Bytes, line: int) -> bool:
    """Whether the line begins like a tag: [ and a letter or digit."""
    if text[line] != _TAG or line + 1 >= len(text):
        return False
    byte = text[line + 1]
    return bool(_ZERO <= byte <= _NINE or 65 <= byte <= 90 or 97 <= byte <= 122)


@njit(cache=True)
def _comment_end(text: Bytes, position: int, begin: int, at_end: bool) -> tuple[int, int]:  # noqa: FBT001
    """What follows the comment, or the game that begins in it."""
    line = position  # no game begins before it: so that thousands of blank lines are looked through once
    while position < len(text):
        byte = text[position]
        if byte == _CLOSE:
            return position + 1, WHOLE
        position += 1
        if byte != _NEWLINE or position <= line or not _blank(text, position):
            continue
        line = _first_line(text, position)
        if line == _MORE or _next_line(text, line) == _MORE:
            if not at_end:
                return _MORE, WHOLE
            line = len(text)
        elif _is_tag(text, line) and _begins_game(text, line, begin):
            return position, OPEN_COMMENT
    return (len(text), OPEN_COMMENT) if at_end else (_MORE, WHOLE)


@njit(cache=True)
def _comment(text: Bytes, position: int, end: int, fresh: bool) -> int:  # noqa: FBT001
    """What follows a comment that begins here; else the position."""
    byte = text[position]
    if byte == _OPEN:
        closing = _CLOSE
    elif byte == _REST or (fresh and byte == _PERCENT):
        closing = _NEWLINE
    else:
        return position
    while position < end and text[position] != closing:
        position += 1
    return position + (closing == _CLOSE)


@njit(cache=True)
def _after_mark(text: Bytes, position: int, end: int) -> int:
    """What follows a byte that ends tokens: the digits of an annotation's number are its own."""
    number = text[position] == _NAG
    position += 1
    while number and position < end and _ZERO <= text[position] <= _NINE:
        position += 1
    return position


@njit(cache=True)
def _token_end(text: Bytes, position: int, end: int) -> int:
    if text[position] == _STAR:
        return position + 1
    while position < end and not _ENDS_TOKEN[text[position]]:
        position += 1
    return position


@njit(cache=True)
def _result(text: Bytes, start: int, stop: int) -> int:
    """The result that a token says: ``*``, ``1-0``, ``0-1`` or ``1/2-1/2``."""
    if stop - start == 1 and text[start] == _STAR:
        return UNKNOWN
    if stop - start == 3 and text[start + 1] == _DASH:
        if text[start] == _ONE and text[start + 2] == _ZERO:
            return WHITE_WON
        if text[start] == _ZERO and text[start + 2] == _ONE:
            return BLACK_WON
    if stop - start == 7 and _is_half(text, start) and _is_half(text, start + 4) and text[start + 3] == _DASH:
        return DRAWN
    return NO_RESULT


@njit(cache=True)
def _is_half(text: Bytes, start: int) -> bool:
    return bool(text[start] == _ONE and text[start + 1] == _SLASH and text[start + 2] == _TWO)


@njit(cache=True)
def _move(text: Bytes, start: int, stop: int, out: Bytes, written: int) -> tuple[int, int]:
    """Writes the move that a token says, if any: number of bytes, and trouble."""
    start = _without_number(text, start, stop)
    trouble = _no_move(text, start, stop)
    if trouble != WHOLE or start == stop:
        return 0, trouble
    castles = _castles(text, start, stop)
    length = 2 * castles - 1 if castles else _length_of_move(text, start, stop)
    if length == 0:
        return 0, WHOLE
    if _says_more(text, start + length, stop):
        castles, length = 0, stop - start  # two moves without a space, such as Nf60-0: no move, as a whole
    for place in range(length):
        byte = text[start + place]
        out[written + place] = _CASTLES if castles and byte == _ZERO else byte
    out[written + length] = _SPACE
    return length + 1, WHOLE


@njit(cache=True)
def _says_more(text: Bytes, position: int, stop: int) -> bool:
    """Whether what stands behind a move may be another one: it has a digit, or the letter of castling."""
    while position < stop:
        if text[position] == _CASTLES or _ZERO <= text[position] <= _NINE:
            return True
        position += 1
    return False


@njit(cache=True)
def _without_number(text: Bytes, start: int, stop: int) -> int:
    """The token's begin behind a move number (``12.``, ``12...``, ``12``); castling with zeros is none."""
    if _castles(text, start, stop) or (stop - start == 4 and text[start] == _ZERO):  # 0-0, 0000
        return start
    while start < stop and _ZERO <= text[start] <= _NINE:
        start += 1
    while start < stop and text[start] == _DOT:
        start += 1
    return start


@njit(cache=True)
def _no_move(text: Bytes, start: int, stop: int) -> int:
    """Trouble of tokens that are moves in other games: null moves (``--``, ``Z0``, ``0000``, ``@@@@``), drops."""
    length = stop - start
    if length == 2 and text[start] == text[start + 1] == _DASH:
        return NULL_MOVE
    if length == 2 and text[start] == _ZED and text[start + 1] == _ZERO:
        return NULL_MOVE
    if length == 4 and text[start] == text[start + 1] == text[start + 2] == text[start + 3]:
        return NULL_MOVE if text[start] in (_ZERO, _AT) else WHOLE
    if length >= 3 and (text[start] == _AT or text[start + 1] == _AT):
        return DROP
    return WHOLE


@njit(cache=True)
def _castles(text: Bytes, start: int, stop: int) -> int:
    """Letters O (or zeros) of castling at the begin of a token: 2, 3, or 0 for another token."""
    letter = text[start] if start < stop else _SPACE
    if letter not in (_CASTLES, _ZERO):
        return 0
    count, position = 1, start + 1
    while count < 3 and position + 1 < stop and text[position] == _DASH and text[position + 1] == letter:
        count += 1
        position += 2
    return count if count > 1 else 0


@njit(cache=True)
def _length_of_move(text: Bytes, start: int, stop: int) -> int:
    """Bytes of a token up to its last square and the promotion behind it; 0 for a word that names no square."""
    byte = text[start]
    if not (65 <= byte <= 90 or 97 <= byte <= 122):
        return 0
    last = stop - 1
    while last > start and not _ONE <= text[last] <= _EIGHT:
        last -= 1
    if last == start:
        return 0
    last += 1
    sign = 1 if last < stop and text[last] == _EQUALS else 0
    if last + sign < stop and text[last + sign] in _PIECES:
        last += sign + 1
    return last - start
