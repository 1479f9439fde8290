"""Chess: games to pretrain on, puzzles and endgames with exact verdicts.

``notation``    moves as text, in four encodings, and back
``positions``   positions as the text of a prompt, and their canonical form
``rules``       the same rules as python-chess, compiled: for millions of positions
``pgn``         games from PGN files; ``corpus``: large collections on disk; ``games``: where games come from
``chess_games``, ``chess_puzzle``, ``chess_endgame``    the testbeds

python-chess is the reference for the rules: whatever is compiled here is tested against it.
"""
