"""What is known of the tasks of reasoning-gym 0.1.25: which are refused and why, and which characters they use.

Found by running all of its tasks with their usual settings: 60 to 200 seeds each (fewer where a question takes longer
than 50 ms); own answers, answers with text around them, with items before, after and between theirs, changed digits,
hostile strings; under two hash seeds; with one object for all seeds and with a fresh one for each; in an empty working
directory, which stayed empty.
"""

from __future__ import annotations

from typing import Final

NEVER: Final[dict[str, str]] = {
    "binary_matrix": "its scorer runs the answer as code (eval or parse_expr)",
    "boxnet": "it has no answer of its own: its problems cannot be demonstrated",
    "codeio": (
        "its answers come from programs that it runs: they draw and time at will, so the same seed gives other answers,"
        " and leave files, such as planet.com, in the working directory"
    ),
    "composite": "it is a mixture of other tasks; use Mixture",
    "countdown": "its scorer runs the answer as code (eval or parse_expr)",
    "graph_color": "it has no answer of its own: its problems cannot be demonstrated",
    "intermediate_integration": "its scorer runs the answer as code (eval or parse_expr)",
    "isomorphic_strings": "another process, under another hash seed, makes other questions",
    "knight_swap": "another process, under another hash seed, makes other questions",
    "n_queens": "its scorer runs the answer as code (eval or parse_expr)",
    "polynomial_multiplication": "its scorer runs the answer as code (eval or parse_expr)",
    "propositional_logic": "it has no answer of its own: its problems cannot be demonstrated",
    "puzzle24": "its scorer runs the answer as code (eval or parse_expr)",
    "ransom_note": "another process, under another hash seed, makes other questions",
    "rubiks_cube": "it has no answer of its own: its problems cannot be demonstrated",
    "rush_hour": "it has no answer of its own: its problems cannot be demonstrated",
    "simple_integration": "its scorer runs the answer as code (eval or parse_expr)",
    "spiral_matrix": "its scorer runs the answer as code (eval or parse_expr)",
    "string_insertion": "its scorer runs the answer as code (eval or parse_expr)",
    "word_ladder": "another process, under another hash seed, makes other questions",
}
"""Tasks that are never made, and why."""

UNSOUND: Final[dict[str, str]] = {
    "advanced_geometry": "it accepts numbers that are off (a tolerance)",
    "coin_flip": "it accepts a prefix of the right digits: '0' scores 1 on more than 9 problems in 10",
    "complex_arithmetic": "it accepts 'nan' for every problem",
    "decimal_arithmetic": "it accepts numbers that are off (a tolerance)",
    "fraction_simplification": "it accepts an answer that only contains the right one",
    "game_of_life": "it accepts rows and cells beyond the right grid",
    "game_of_life_halting": "it accepts any text",
    "gsm_symbolic": "it accepts an answer that only contains the right one",
    "kakurasu": "it accepts an answer that only contains the right one",
    "knights_knaves": "it accepts an answer that only contains the right one",
    "letter_jumble": "it accepts an answer that only contains the right one",
    "number_format": "it accepts numbers that are off (a tolerance)",
    "number_sorting": "it accepts numbers that are off (a tolerance)",
    "polynomial_equations": "it accepts '0' where that is no root, and numbers that are off",
    "pool_matrix": "it accepts numbers that are off (a tolerance)",
    "power_function": "it accepts numbers that are off (a tolerance)",
    "quantum_lock": "it accepts an answer that only contains the right one",
    "sokoban": "it accepts an answer that only contains the right one",
    "survo": "it accepts an answer that only contains the right one",
    "syllogism": "some of its labels are wrong (undistributed middle), and 'Yes' is right for 2 problems in 3",
    "time_intervals": "it accepts any text after the right number of days or the right time",
    "word_sorting": "it accepts any words after the right ones",
}
"""Tasks whose scorers or labels are known to be wrong, and how."""

NOTES: Final[dict[str, str]] = {
    "base_conversion": "1 in 100 of its answers is empty; these problems are rejected",
    "circuit_logic": "'0' is right for 3 problems in 5",
    "course_schedule": "'True' is right for 1 problem in 2",
    "cryptarithm": "of a letter that is given twice the last digit counts",
    "futoshiki": "a question takes from 0.1 s to several seconds",
    "prime_factorization": "its scorer raises for text that is no number; that is a wrong answer here",
    "quantum_lock": "a question takes from 1 ms to 0.8 s",
    "rectangle_count": "its scorer reads digits of other scripts; the lexicon keeps them out",
    "sudoku": "a question takes about 0.06 s",
    "tower_of_hanoi": (
        "its scorer prints a line for some wrong answers, which is swallowed here; what is glued to the front of a move"
        " is not read"
    ),
    "zebra_puzzles": "a question takes about 0.2 s",
}
"""What to know of other tasks."""

FRESH: Final = frozenset(("acre", "gsm_symbolic", "list_functions"))
"""Tasks whose object makes questions for its own seed only; any other makes them for any seed."""

MARKED_ANSWERS: Final = frozenset(("ab",))
"""Tasks whose answers contain ``#``."""

SEED_BITS: Final[dict[str, int]] = {"pool_matrix": 32}
"""Tasks that take shorter seeds than the usual 63 bits."""

EXTRA_CHARACTERS: Final[dict[str, str]] = {
    "acre": "\u2192",
    "advanced_geometry": "\u00b0",
    "caesar_cipher": "\u00cb",
    "circuit_logic": "\u2191\u2193\u2295\u2500\u2502\u250c\u2510\u2514\u2518\u251c",
    "complex_arithmetic": "\u00d7\u00f7",
    "emoji_mystery": (
        "\u00e9\u00ef\u00f4\u2014\u2019\u201c\u201d\u2122\u2620\u2763"
        "\u2764\ufe0f\U0001f479\U0001f47a\U0001f47b\U0001f47d\U0001f47e\U0001f47f\U0001f48b\U0001f48c"
        "\U0001f494\U0001f495\U0001f497\U0001f499\U0001f49b\U0001f49c\U0001f49d\U0001f49e\U0001f49f\U0001f4a9"
        "\U0001f5a4\U0001f600\U0001f601\U0001f602\U0001f603\U0001f604\U0001f605\U0001f606\U0001f607\U0001f608"
        "\U0001f609\U0001f60a\U0001f60b\U0001f60d\U0001f610\U0001f611\U0001f612\U0001f613\U0001f616\U0001f618"
        "\U0001f61b\U0001f61c\U0001f61d\U0001f61e\U0001f620\U0001f621\U0001f624\U0001f626\U0001f627\U0001f628"
        "\U0001f629\U0001f62b\U0001f62c\U0001f62d\U0001f62e\U0001f62f\U0001f630\U0001f631\U0001f632\U0001f633"
        "\U0001f638\U0001f639\U0001f63a\U0001f63b\U0001f63d\U0001f63f\U0001f640\U0001f642\U0001f643\U0001f644"
        "\U0001f648\U0001f649\U0001f64a\U0001f90d\U0001f90e\U0001f910\U0001f911\U0001f914\U0001f916\U0001f917"
        "\U0001f921\U0001f923\U0001f928\U0001f929\U0001f92a\U0001f92b\U0001f92d\U0001f970\U0001f971\U0001f972"
        "\U0001f97a\U0001f9e1\U000e0110\U000e0111\U000e0112\U000e0113\U000e0114\U000e0115\U000e0116\U000e0117"
        "\U000e0118\U000e0119\U000e011a\U000e011b\U000e011c\U000e011d\U000e011e\U000e011f\U000e0120\U000e0121"
        "\U000e0122\U000e0123\U000e0124\U000e0125\U000e0126\U000e0127\U000e0128\U000e0129\U000e012a\U000e012b"
        "\U000e012c\U000e012d\U000e012e\U000e012f\U000e0130\U000e0131\U000e0132\U000e0133\U000e0134\U000e0135"
        "\U000e0136\U000e0137\U000e0138\U000e0139\U000e013a\U000e013b\U000e013c\U000e013d\U000e013e\U000e013f"
        "\U000e0140\U000e0141\U000e0142\U000e0143\U000e0144\U000e0145\U000e0146\U000e0147\U000e0148\U000e0149"
        "\U000e014a\U000e014b\U000e014c\U000e014d\U000e014e\U000e014f\U000e0150\U000e0151\U000e0152\U000e0153"
        "\U000e0154\U000e0155\U000e0156\U000e0157\U000e0158\U000e0159\U000e015a\U000e015b\U000e015c\U000e015d"
        "\U000e015e\U000e015f\U000e0160\U000e0161\U000e0162\U000e0163\U000e0164\U000e0165\U000e0166\U000e0167"
        "\U000e0168\U000e0169\U000e016a\U000e0170\U000e0174\U000e0184\U000e0189\U000e018c\U000e018d\U000e0192"
        "\U000e0199\U000e019f\U000e01a4\U000e01b3\U000e01d2"
    ),
    "figlet_font": (
        "\u00b7\u2022\u2550\u2551\u2554\u2557\u255a\u255d\u2560\u2563\u2566\u2569\u2580\u2584\u2588\u258c\u2590\u25aa"
    ),
    "futoshiki": "\u2227\u2228",
    "gsm_symbolic": "\u00a3\u20ac",
    "letter_counting": "\u00e0",
    "modulo_grid": "\u2705\u274c\u2754",
    "needle_haystack": "\u2019",
    "prime_factorization": "\u00d7",
    "quantum_lock": "\u2192",
    "rectangle_count": "\u2588",
    "sentence_reordering": "\u00f4\u00fb\u2019\u201c\u201d\u2122",
    "simple_geometry": "\u00b0",
    "word_sequence_reversal": "\u00eb",
}
"""Characters besides printable ASCII that occur in the questions and answers of a task."""
