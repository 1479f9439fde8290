"""Pictures stand beside the rollouts that they belong to, and need nothing from outside; shifts are on the page."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from xml.etree import ElementTree

import chess
import pytest

from experiments.boards import LARGEST, MOST_PICTURES, check_picture, own_ids, with_pictures
from experiments.claims import Check, Claim, level
from experiments.judgement import judge
from experiments.report import build_report
from experiments.results import load
from experiments.shift_tables import before_and_after, last_stage, shift_tables
from experiments.shifts import CATEGORIES, Shift, Shifted
from experiments.store import Store
from experiments.tables import effect_above_floor, rollout_table
from testbeds import Choice, Mixture, Problem
from testbeds.chess.boards import MOST_ARROWS, board_svg, chess_picture
from testbeds.latent_modules import LatentModules

pytestmark = pytest.mark.usefixtures("quick_holm")

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="t"><title id="t">{}</title>'
    '<g id="g"></g><use href="#g" xlink:href="#g" xmlns:xlink="http://www.w3.org/1999/xlink"/></svg>'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketched(LatentModules):
    """Latent modules whose problems have three answers, of which the first is right, and a picture."""

    def choices(self, _problem):
        return tuple(Choice(text=text, kinds=("correct",) if text == "u" else ()) for text in "uvw")

    def picture(self, _problem, probabilities):
        return SVG.format(" ".join(f"{choice.text}={probability:.2f}" for choice, probability in probabilities))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost(Sketched):
    """Its problems come from a file that is not there."""

    def generate(self, rng, count):
        raise FileNotFoundError("no corpus 'lichess' on this machine")


def sketching(fake, task_of=lambda seed: Sketched(world=seed, depth=2)):
    """The evaluations of the fake study, of a task with pictures."""

    def evaluations(seed, scale):
        return {
            name: replace(
                each, sets=tuple(replace(one, suite=replace(one.suite, task=task_of(seed))) for one in each.sets)
            )
            for name, each in fake.evaluations(seed, scale).items()
        }

    return evaluations


def sealing_choices(fake):
    """``fake._seal`` with choices: u is right and as likely as the fake accuracy says, v has 0.3 and w 0.05."""
    seal = fake._seal

    def sealed(store, identity, kind, files, keys, parents=()):
        if kind == "evaluation":
            results = json.loads(files["results.json"])
            asked = [("u", results["metrics"]["accuracy"], True), ("v", 0.3, False), ("w", 0.05, False)]
            asked.sort(key=lambda choice: -choice[1])
            results["metrics"]["legal_mass"] = sum(probability for _, probability, _ in asked)
            rows = [json.loads(line) | {"choices": asked} for line in files["rollouts.jsonl"].splitlines()]
            files = files | {
                "results.json": json.dumps(results),
                "rollouts.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
            }
        seal(store, identity, kind, files, keys, parents)

    return sealed


@pytest.fixture(scope="module")
def sketched(fake, tmp_path_factory):
    """(study, store) whose evaluations have choices and pictures."""
    store = Store(tmp_path_factory.mktemp("sketched"))
    study = fake.experiment(evaluations=sketching(fake))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fake, "_seal", sealing_choices(fake))
        fake.fill(store, study)
    return study, store


@pytest.fixture(scope="module")
def text(fake, sketched, tmp_path_factory):
    """The study's page."""
    study, store = sketched
    return build_report(study, fake.SCALE, store, tmp_path_factory.mktemp("page") / "r.html").read_text("utf-8")


@pytest.fixture(scope="module")
def page(text):
    """The page, read by the parser of the report's own tests."""
    spec = spec_from_file_location("report_tests", Path(__file__).with_name("test_report.py"))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Page(text)


# ---- on the page


def test_each_shown_problem_has_a_picture_before_and_after_the_last_stage(fake, sketched):
    study, store = sketched
    results = load(study, fake.SCALE, store)
    table = with_pictures(study, fake.SCALE, results, store, rollout_table(study, results, store))
    # 4 problems x 2 stages of the arm that the main claim speaks of first. At seed 11 it has .38 of .73 after SFT,
    # and .88 of 1.23 after RL.
    assert [len(problem.pictures) for problem in table.problems] == [2, 2, 2, 2]
    before, after = table.problems[0].pictures
    assert before.caption == "SFT-8 after SFT: u 0.52 ✓, v 0.41 ✗, w 0.07 ✗"
    assert after.caption == "SFT-8 after RL: u 0.72 ✓, v 0.24 ✗, w 0.04 ✗"
    assert "u=0.88 v=0.30 w=0.05" in after.svg


def test_a_study_names_the_arm_that_is_drawn(fake, sketched):
    study, store = sketched
    study = replace(study, drawn="RL")
    results = load(study, fake.SCALE, store)
    table = with_pictures(study, fake.SCALE, results, store, rollout_table(study, results, store))
    assert [picture.caption.split(":")[0] for picture in table.problems[0].pictures] == [
        "RL after Pretrain",
        "RL after RL",
    ]
    with pytest.raises(ValueError, match="drawn of 'e99' is 'PPO', which is no arm"):
        replace(study, drawn="PPO")


def test_the_page_with_pictures_is_sound_and_stands_alone(text, page):
    assert page.faults == []
    assert [name for name, count in Counter(page.ids).items() if count > 1] == []
    used = {attrs[name][1:] for _, attrs in page.tags for name in ("href", "xlink:href") if name in attrs}
    used |= {attrs["aria-labelledby"] for _, attrs in page.tags if "aria-labelledby" in attrs}
    assert used <= set(page.ids)
    assert not re.search(r"url\((?!#)", text)
    assert len([attrs for attrs in page.all("svg") if attrs.get("role") == "img"]) == MOST_PICTURES
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(attrs.get("scope") in {"col", "row", "rowgroup", "colgroup"} for attrs in page.all("th"))


def test_a_corpus_that_is_not_here_leaves_a_note_instead_of_pictures(fake, sketched):
    study, store = sketched
    results = load(study, fake.SCALE, store)
    table = rollout_table(study, results, store)
    away = replace(study, evaluations=sketching(fake, lambda seed: Lost(world=seed, depth=2)))
    drawn = with_pictures(away, fake.SCALE, results, store, table)
    assert drawn.note == "Problems are not drawn: no corpus 'lichess' on this machine"
    assert drawn.problems == table.problems


def test_a_mixture_draws_what_its_components_draw(fake, sketched):
    study, store = sketched
    results = load(study, fake.SCALE, store)
    table = rollout_table(study, results, store)

    def mixed(seed):
        return Mixture(tasks=(Sketched(world=seed, depth=2), LatentModules(world=seed, depth=3)), weights=(1.0, 1.0))

    in_mixture = replace(study, evaluations=sketching(fake, mixed))
    problems = in_mixture.evaluations(11, fake.SCALE)["test"].sets[0].problems()
    drawable = {problem.key for problem in problems if problem.features["depth"] == 2}
    shown = with_pictures(in_mixture, fake.SCALE, results, store, table)
    assert {problem.key for problem in shown.problems if problem.pictures} == {
        problem.key for problem in table.problems if problem.key in drawable
    }


def test_without_pictures_the_table_stays_as_it_was(fake, filled):
    study = fake.experiment()
    results = load(study, fake.SCALE, filled)
    table = rollout_table(study, results, filled)
    assert with_pictures(study, fake.SCALE, results, filled, table) is table


# ---- shifts on the page and in claims


def test_shifts_are_counted_by_arm_and_band(fake, sketched):
    study, store = sketched
    tables = shift_tables(study, load(study, fake.SCALE, store))
    assert [table.evaluation for table in tables] == ["test", "memory"]
    rows = {row.arm: dict(zip(CATEGORIES, row.shares, strict=True)) for row in tables[0].rows}
    # u has .38 .40 .42 after SFT and .88 .90 .92 after RL, always above v with .30.
    assert rows["SFT-8"]["amplified"] == 1
    # u has .19 .20 .21, then .29 .30 .31: v stays above in the first seed, with a smaller share; u overtakes it in the
    # others (at .30 it stands first among equals).
    assert rows["SFT-4 <b>"]["unmoved"] == pytest.approx(1 / 3)
    assert rows["SFT-4 <b>"]["corrected"] == pytest.approx(2 / 3)
    # u has .10, then .09 .10 .11: the wrong v gains where u loses.
    assert rows["RL"]["wrong_amplified"] == pytest.approx(1 / 3)
    assert [(row.band, row.problems, row.seeds) for row in tables[0].bands if row.arm == "RL"] == [("depth=2", 6, 3)]
    assert [(row.since, row.stage) for row in tables[0].rows] == [("Pretrain", "RL"), ("SFT", "RL"), ("SFT", "RL")]
    assert last_stage(tables) == "RL"
    assert last_stage(()) == "the last stage"


def test_parts_of_one_stage_are_compared_with_what_came_before_them(fake, sketched):
    study, store = sketched
    policies = list(load(study, fake.SCALE, store).of(seed=11, arm="SFT-8"))
    base, sft, rl = policies
    assert before_and_after(policies) == (sft, rl)
    more = replace(rl, stage=3)
    assert before_and_after([*policies, more]) == (sft, more)
    assert before_and_after([rl, more]) == (rl, more)
    assert before_and_after([base]) is None


def test_the_page_says_what_became_of_the_answers(page):
    assert "What RL did to each problem's answer" in page.words
    assert "SFT-8 SFT to RL all 6 1.00 0.00" in page.words


def test_a_claim_about_shifts_is_judged_like_any_other(fake, sketched):
    study, store = sketched
    results = load(study, fake.SCALE, store)
    corrected = Shift(arm="SFT-4 <b>", evaluation="test", band="depth=2", metric="corrected")
    claim = Claim(name="shift", statement="RL corrects.", effect=level(corrected), low=0.1)
    (finding,) = judge([claim], [], results.seeds, results.reader()).findings
    assert finding.per_seed == ((11, 0.0), (12, 1.0), (13, 1.0))
    assert effect_above_floor(finding, results) is None
    assert str(corrected) == "share of problems corrected in SFT-4 <b> (test, depth=2)"
    assert str(replace(corrected, since=0, stage=1)).endswith("(test, depth=2, stage 0 to stage 1)")
    with pytest.raises(ValueError, match="no problem of band 'depth=3' lists choices"):
        results.reader()(replace(corrected, band="depth=3"), 11)


def test_a_band_in_which_nothing_can_be_sorted_leaves_its_claim_open(fake, sketched, monkeypatch):
    study, store = sketched
    results = load(study, fake.SCALE, store)
    unsorted = tuple(Shifted(category=None, features={"depth": 2}, component="") for _ in range(6))
    monkeypatch.setattr("experiments.results.shifts", lambda _before, _after: unsorted)
    measure = Shift(arm="SFT-8", evaluation="test", band="depth=2", metric="amplified")
    claim = Claim(name="shift", statement="RL amplifies.", effect=level(measure), low=0.1)
    check = Check(name="most", statement="Most are amplified.", measure=measure, low=0.5)
    judged = judge([claim], [], results.seeds, results.reader())
    assert "has no value in seed 11 (and in 2 more)" in judged.findings[0].reason
    assert "none of the 6 problems can be sorted" in judged.findings[0].reason
    assert judge([], [check], results.seeds, results.reader()).checks[0].holds is None


def test_choices_that_a_task_writes_no_more_are_not_drawn(fake, sketched, monkeypatch):
    study, store = sketched
    results = load(study, fake.SCALE, store)
    table = rollout_table(study, results, store)
    monkeypatch.setattr(Sketched, "choices", lambda _self, _problem: (Choice(text="other", kinds=("correct",)),))
    assert [each.pictures for each in with_pictures(study, fake.SCALE, results, store, table).problems] == [()] * 4


def test_a_shift_of_a_missing_evaluation_is_missing(fake, sketched, tmp_path):
    study, store = sketched
    store = Store(tmp_path)
    fake.fill(store, study, skip=lambda it: it == (11, "SFT-8", 1, "test"))
    read = load(study, fake.SCALE, store).reader()
    assert read(Shift(arm="SFT-8", evaluation="test", metric="amplified"), 11) is None


# ---- what a picture may be


def test_ids_are_made_its_own_and_other_names_stay():
    drawn = own_ids('<svg id="a"><use href="#a" xlink:href="#a"/><g id="b" fill="url(#a)" data-id="a"/></svg>', "p1")
    assert drawn == (
        '<svg id="p1-a"><use href="#p1-a" xlink:href="#p1-a"/><g id="p1-b" fill="url(#p1-a)" data-id="a"/></svg>'
    )


@pytest.mark.parametrize(
    ("svg", "message"),
    [
        ("<svg>", "one well-formed <svg> element"),
        ("<div></div>", "one <svg> element, got <div>"),
        ('<svg><image href="https://example.org/a.png"/></svg>', "needs nothing from outside"),
        ('<svg><a href="https://example.org"/></svg>', "needs nothing from outside"),
        ("<svg><script>1</script></svg>", "needs nothing from outside"),
        ('<svg onload="x"/>', "needs nothing from outside"),
        ('<svg><g fill="url(a.svg#b)"/></svg>', "refers to its own parts alone"),
        (f"<svg><desc>{'x' * LARGEST}</desc></svg>", f"at most {LARGEST} characters"),
    ],
)
def test_a_picture_that_needs_something_from_outside_is_refused(svg, message):
    with pytest.raises(ValueError, match=message):
        check_picture(svg)


# ---- chess


class OnBoard:
    """A task with one position."""

    def __init__(self, fen):
        self.fen = fen

    def board(self, _problem):
        return chess.Board(self.fen)


PROBLEM = Problem(prompt="", key="", certificate=None)


def choices(board, correct=()):
    """Every legal move with its squares."""
    return [
        Choice(
            text=move.uci(),
            kinds=("correct",) if move.uci() in correct else (),
            arrow=(chess.SQUARE_NAMES[move.from_square], chess.SQUARE_NAMES[move.to_square]),
        )
        for move in board.legal_moves
    ]


def arrows_of(svg):
    """(opacity, colour) of the shaft of every arrow, in the order of drawing."""
    lines = [element for element in ElementTree.fromstring(svg).iter() if element.attrib.get("class") == "arrow"]
    return [(float(line.attrib["opacity"]), line.attrib["stroke"]) for line in lines if line.tag.endswith("line")]


def test_a_board_shows_the_likeliest_moves_by_strength_and_colour():
    board = chess.Board()
    listed = choices(board, correct=("e2e4",))
    probabilities = [(choice, {"e2e4": 0.06, "d2d4": 0.03}.get(choice.text, 0.0001)) for choice in listed]
    svg = chess_picture(OnBoard(board.fen()), PROBLEM, probabilities)
    total = 0.06 + 0.03 + 18 * 0.0001
    # Drawn from the faintest to the likeliest; the others are under 2 %. Opacity .35 + .65 share, to two digits.
    (wrong, orange), (right, blue) = arrows_of(svg)
    assert right == pytest.approx(0.35 + 0.65 * 0.06 / total, abs=0.01)
    assert wrong == pytest.approx(0.35 + 0.65 * 0.03 / total, abs=0.01)
    assert (blue, orange) == ("#0072b2", "#d55e00")
    assert f"e2 to e4 {0.06 / total:.2f} (right), d2 to d4 {0.03 / total:.2f} (wrong)" in svg


def test_no_more_arrows_than_can_be_told_apart():
    board = chess.Board()
    svg = chess_picture(OnBoard(board.fen()), PROBLEM, [(choice, 0.05) for choice in choices(board)])
    assert len(arrows_of(svg)) == MOST_ARROWS


def test_promotions_between_the_same_squares_are_one_arrow():
    board = chess.Board("8/P6k/8/8/8/8/8/K7 w - - 0 1")
    listed = [choice for choice in choices(board, correct=("a7a8q",)) if choice.text.startswith("a7a8")]
    svg = chess_picture(OnBoard(board.fen()), PROBLEM, [(choice, 0.1) for choice in listed])
    assert "a7 to a8 1.00 (right)" in svg
    assert arrows_of(svg) == [(1.0, "#0072b2")]


@pytest.mark.parametrize(
    "fen",
    [
        chess.STARTING_FEN,
        "r1bqkb1r/pppp1Qpp/2n2n2/4p3/2B1P3/8/PPPP1PPP/RNB1K1NR b KQkq - 0 4",  # mate: a check with a gradient
        "8/8/8/8/8/8/6k1/K7 b - - 0 1",
    ],
)
def test_a_board_is_small_well_formed_and_said_in_words(fen):
    board = chess.Board(fen)
    full = [("a1", "h8", 0.2, True), ("a2", "h7", 0.2, False), ("b1", "c3", 0.2, False), ("g1", "f3", 0.2, False)]
    svg = own_ids(check_picture(board_svg(board, full, last_move=chess.Move.from_uci("e2e4"))), "one")
    assert len(svg) < LARGEST
    root = ElementTree.fromstring(svg)
    assert root.attrib["role"] == "img"
    side = "White" if board.turn else "Black"
    parts = {element.attrib.get("id"): element.text for element in root.iter() if element.text}
    assert parts[root.attrib["aria-labelledby"]] == f"Chess board, {side} to move"
    assert board.fen() in parts[root.attrib["aria-describedby"]]


def test_a_board_is_seen_from_the_side_to_move():
    kings = "8/8/8/8/8/8/6k1/K7"
    places = [
        re.findall(r'<use href="#white-king" xlink:href="#white-king" transform="translate\((\d+), (\d+)\)"', svg)
        for svg in (board_svg(chess.Board(f"{kings} {side} - - 0 1"), []) for side in "wb")
    ]
    # a1 is below on the left for White, above on the right for Black; 15 is the margin, and a square is 45 wide.
    assert places == [[("15", "330")], [("330", "15")]]


@pytest.mark.parametrize(
    ("arrow", "message"),
    [(("e2", "e9", 0.5, True), "got 'e9'"), (("e2", "e4", 1.5, True), r"e2e4 must be in \[0, 1\], got 1.5")],
)
def test_arrows_that_cannot_be_drawn_are_refused(arrow, message):
    with pytest.raises(ValueError, match=message):
        board_svg(chess.Board(), [arrow])


def test_a_policy_without_any_probability_has_no_board():
    assert chess_picture(OnBoard(chess.STARTING_FEN), PROBLEM, []) is None
