"""The report is one sound page that says what the findings say, complete or not, the same for the same results."""

from __future__ import annotations

import errno
import json
import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from experiments.claims import Registration, register
from experiments.figures import save_main_figure
from experiments.files import write_whole
from experiments.registry import Run
from experiments.report import build_report, collect, findings_json, render_markdown, si
from experiments.results import load
from experiments.sentences import Age, claims_caption, commands, looks, registration_note
from experiments.store import Store, StoreError

pytestmark = pytest.mark.usefixtures("quick_holm")

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """Checks nesting while it reads; keeps what the tests look at."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.text, self.faults = [], [], [], [], []
        self.feed(text)
        self.close()
        self.faults += self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module")
def built(fake, filled, tmp_path_factory):
    """The text of the complete fake study's page."""
    destination = tmp_path_factory.mktemp("page") / "report.html"
    assert build_report(fake.experiment(), fake.SCALE, filled, destination) == destination
    return destination.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(built):
    return Page(built)


@pytest.fixture
def smoke(fake, tmp_path):
    """(study, scale, store) of a one-seed run."""
    study = fake.experiment()
    store = Store(tmp_path / "store")
    fake.fill(store, study, study.scale("smoke"))
    return study, study.scale("smoke"), store


def test_the_page_is_well_formed_and_needs_nothing_from_outside(built, page):
    assert built.startswith("<!DOCTYPE html>")
    assert page.faults == []
    assert len(page.ids) == len(set(page.ids))
    for tag, attrs in page.tags:
        for name in ("src", "href", "xlink:href", "srcset"):
            assert attrs.get(name, "#").startswith("#"), (tag, attrs)
    assert "@import" not in built
    assert not re.search(r"url\((?!#)", built)
    assert not page.all("script")
    assert not page.all("link")


def test_every_link_and_label_on_the_page_has_its_target(page):
    used = {attrs["href"][1:] for attrs in page.all("a")}
    used |= {attrs["aria-labelledby"] for _, attrs in page.tags if "aria-labelledby" in attrs}
    used |= {attrs["xlink:href"][1:] for attrs in page.all("use")}
    assert used <= set(page.ids)


def test_a_screen_reader_finds_its_way(page):
    assert page.all("html")[0]["lang"] == "en"
    headings = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert headings.count(1) == 1
    assert headings[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))
    assert all(attrs.get("scope") in {"col", "row", "rowgroup", "colgroup"} for attrs in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))
    cards = [attrs for attrs in page.all("div") if attrs.get("role") == "img"]
    assert len(cards) == len(page.all("figure")) > 3
    assert all(re.search(r"\d\.\d", attrs["aria-label"]) for attrs in cards)


def test_sections_stand_in_the_order_in_which_a_sceptic_reads(page):
    wanted = ["claims", "checks", "result", "curves", "bands", "rollouts", "compute", "equal", "overlap", "differences"]
    wanted += ["fingerprints", "threats", "rerun", "cite"]
    assert [name for name in page.ids if name in wanted] == wanted


def test_the_answer_is_composed_from_the_findings(page):
    # accuracy() of the fake study: differences .79 .80 .81, interval .8 +- 4.30 x .01 / sqrt 3 = .775 to .825.
    assert (
        "The main claim is supported: RL gains more than 0.2 after SFT-8 than alone. The mean effect is 0.800, 95 %"
        " interval 0.775 to 0.825 over 3 seeds; predicted above 0.2" in page.words
    )
    assert "Of 1 claim fixed before the first run in this store: 1 supported, 0 refuted, 0 inconclusive." in page.words


def test_what_people_wrote_is_escaped(built, page):
    assert "<i>" not in built
    assert "Does <SFT> help RL?" in page.words
    assert "SFT-4 <b>" in page.words
    assert "as <written>" in page.words


def test_numbers_and_proofs_are_on_the_page(page, fake, filled):
    results = load(fake.experiment(), fake.SCALE, filled)
    for wanted in (
        "0.90 (0.89)",  # raw and above the floor
        "stages[1] SFT.source.count",
        "asks training problems on purpose",
        "stagecraft run e99 --scale demo",
        "Claims registered 2020-01-02T00:00:00+00:00, fingerprint",
        "Arms and evaluations of this scale registered 2020-01-02T00:00:00+00:00.",
        "Runs started since then, at all scales: demo with 3 seeds (11 to 13) at 2020-01-02T00:00:00+00:00.",
        "Three seeds.",
        "Nobody (2000).",
        "11: 0.790",
        *(policy.stage_id for policy in results.policies),
    ):
        assert wanted in page.words


def test_equal_results_give_equal_bytes(fake, filled, built, tmp_path):
    again = build_report(fake.experiment(), fake.SCALE, Store(filled.root), tmp_path / "again.html")
    assert again.read_text(encoding="utf-8") == built


def test_an_empty_store_still_has_a_page(fake, tmp_path):
    path = build_report(fake.experiment(), fake.SCALE, Store(tmp_path / "store"), tmp_path / "report.html")
    page = Page(path.read_text(encoding="utf-8"))
    assert page.faults == []
    assert "Claims were not registered." in page.words
    assert "No claim could be judged" in page.words
    assert "18 stages and evaluations are missing" in page.words  # stages; 3 seeds x 6


def test_one_seed_is_reported_as_inconclusive_with_its_files_beside_it(smoke):
    study, scale, store = smoke
    register(study, scale, store.root)
    path = build_report(study, scale, store)
    assert path == store.root / "experiments" / "e99" / "smoke" / "report.html"
    assert {file.name for file in path.parent.iterdir()} == {
        "report.html",
        "findings.json",
        "findings.md",
        "scores.csv",
        "figure.svg",
    }
    findings = json.loads((path.parent / "findings.json").read_text())
    assert findings["findings"][0]["outcome"] == "inconclusive"
    assert "1 seed has no variance" in findings["answer"]
    assert findings["answer"] in (path.parent / "findings.md").read_text()


def test_changed_claims_are_marked_on_the_page_and_in_their_row(smoke, fake):
    study, scale, store = smoke
    register(study, scale, store.root)
    moved = fake.experiment(claims=(fake.claim(low=0.1),))
    page = Page(build_report(moved, scale, store).read_text(encoding="utf-8"))
    assert "Claims changed after the first run." in page.words
    assert "claim 'demonstrations unlock RL' changed in low, statement" in page.words
    assert "changed after the first run" in page.words
    assert "fixed before the first run" not in page.words


def test_a_failed_check_is_the_first_thing_a_reader_sees(fake, tmp_path):
    study, store = fake.experiment(), Store(tmp_path / "store")
    fake.fill(store, study, study.scale("smoke"), memory=0.5)
    collected = collect(study, study.scale("smoke"), store)
    assert collected.answer.startswith("No claim could be judged: the check 'memorised' failed")
    assert {finding.outcome for finding in collected.judgement.findings} == {"inconclusive"}


def test_a_leak_voids_the_claims_and_is_marked_in_its_table(fake, tmp_path):
    study, store = fake.experiment(), Store(tmp_path / "store")
    fake.fill(store, study, study.scale("smoke"), leaking=True)
    text = build_report(study, study.scale("smoke"), store, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "3 of 3 problems of evaluation test were training problems" in Page(text).words
    assert 'class="number leak"' in text


def test_another_number_of_seeds_and_another_store_have_their_own_command(fake, filled):
    study = fake.experiment()
    two = replace(fake.SCALE, seeds=2)
    run = f"stagecraft run e99 --scale demo --seeds 2 --store {filled.root}"
    assert collect(study, two, filled).commands[1] == run
    assert commands(study, fake.SCALE, Path("store"))[2] == "stagecraft report e99 --scale demo"
    assert commands(study, fake.SCALE, Path("my store"))[2] == "stagecraft report e99 --scale demo --store 'my store'"


def test_the_main_figure_is_saved_for_a_readme(fake, filled, tmp_path):
    study = fake.experiment()
    results = load(study, fake.SCALE, filled)
    svg = save_main_figure(study, results, tmp_path / "figure.svg")
    assert svg.read_text().count("SFT-8") >= 1
    png = save_main_figure(study, results, tmp_path / "deep" / "figure.png")
    assert png.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"\.svg or \.png"):
        save_main_figure(study, results, tmp_path / "figure.pdf")


@pytest.mark.parametrize(
    ("quantity", "text"),
    [(0, "0"), (12, "12"), (999, "999"), (1762345, "1.76 M"), (999_999, "1 M"), (1_234_567_890_123, "1.23 T")],
)
def test_large_numbers_have_three_digits_and_a_prefix(quantity, text):
    assert si(quantity) == text


# ---- what the registration bears out


def test_results_that_are_older_than_the_claims_are_the_first_thing_a_reader_sees(smoke):
    study, scale, store = smoke  # 6 stages with 2 evaluations each: 18 artifacts
    register(study, scale, store.root, now=datetime.now(UTC) + timedelta(days=1))
    collected = collect(study, scale, store)
    assert (collected.age.older, collected.age.total) == (18, 18)
    page = Page(build_report(study, scale, store).read_text(encoding="utf-8"))
    assert "18 of 18 artifacts existed before the claims were registered." in page.words
    assert "Of 1 claim (18 of 18 artifacts existed before the claims were registered): 0 supported" in page.words
    assert "fixed before the first run" not in page.words
    markdown = (store.root / "experiments" / "e99" / "smoke" / "findings.md").read_text()
    assert "**18 of 18 artifacts existed before the claims were registered.**" in markdown


def test_claims_that_were_deleted_and_written_anew_are_younger_than_the_results(fake, filled, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(filled.root, root)
    (root / "experiments" / "e99" / "claims.json").unlink()
    study = fake.experiment()
    register(study, fake.SCALE, root, now=datetime.now(UTC) + timedelta(days=1))
    assert collect(study, fake.SCALE, Store(root)).age.older == 54


def test_recipes_that_changed_are_named_above_the_numbers(fake, filled, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(filled.root / "experiments", root / "experiments")
    longer = fake.experiment(
        arms=lambda seed, scale: fake.arms(seed, scale) | {"RL": fake.arms(seed, scale)["RL"].upto(0)}
    )
    words = Page(build_report(longer, fake.SCALE, Store(root), tmp_path / "r.html").read_text()).words
    assert "Arms or evaluations changed after the first run." in words
    assert "arm 'RL' lost its stages from 1 (RL) on" in words
    shutil.rmtree(root / "experiments" / "e99" / "designs")
    words = Page(build_report(longer, fake.SCALE, Store(root), tmp_path / "r.html").read_text()).words
    assert "Arms and evaluations were not registered." in words


def test_a_registration_that_was_edited_is_named_and_not_trusted(fake, filled, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(filled.root, root)
    file = root / "experiments" / "e99" / "claims.json"
    file.write_text(file.read_text().replace("SFT-8 than alone", "SFT-8 than alone, surely"))
    words = Page(build_report(fake.experiment(), fake.SCALE, Store(root), tmp_path / "r.html").read_text()).words
    assert "The registration was edited." in words
    assert "fixed before the first run in this store" not in words


def test_a_scale_that_was_registered_after_its_results_says_so(fake, filled, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(filled.root, root)
    study = fake.experiment()
    shutil.rmtree(root / "experiments" / "e99" / "designs")
    register(study, fake.SCALE, root, now=datetime.now(UTC) + timedelta(days=1))
    words = Page(build_report(study, fake.SCALE, Store(root), tmp_path / "r.html").read_text()).words
    assert "54 of 54 artifacts are older than that" in words
    assert "fixed before the first run in this store" in words  # which the claims still were


NEW = Age(older=0, older_than_design=0, total=54)


def registered(*runs, unreadable=0):
    return Registration(
        fingerprint="f",
        registered="2026-01-02T12:00:00+00:00",
        designed=None,
        edited=(),
        changes=(),
        runs=tuple(Run(time=time, scale=scale, seeds=seeds) for time, scale, seeds in runs),
        unreadable_runs=unreadable,
    )


def test_a_look_is_a_scale_and_a_set_of_seeds():
    runs = [("t1", "demo", (1, 2, 3)), ("t2", "demo", (1, 2, 3)), ("t3", "full", (1, 2, 3)), ("t4", "full", (1, 2))]
    assert looks(registered(*runs)) == 2  # two seeds are never judged
    assert "judged at 2 of these combinations" in registration_note(registered(*runs), NEW)
    assert "judged at" not in registration_note(registered(*runs[:2]), NEW)


def test_a_hundred_runs_are_one_phrase():
    runs = [(f"2026-01-{day:02}", "demo", (5, 6, 7, 8)) for day in range(1, 29)] + [("2026-02-01", "smoke", (5,))]
    note = registration_note(registered(*runs, unreadable=2), NEW)
    assert (
        "demo with 4 seeds (5 to 8) 28 times from 2026-01-01 to 2026-01-28; smoke with 1 seed (5) at 2026-02-01."
        in note
    )
    assert "2 lines of the log of runs cannot be read" in note


@pytest.mark.parametrize(
    ("seeds", "wanted", "never"),
    [
        (1, "With 1 seed nothing is tested; at least 3 are needed.", "cannot give less"),
        (2, "With 2 seeds nothing is tested", "cannot give less"),
        (3, "3 seeds cannot give less than p = 0.12, so with so few seeds", "sampled"),
        (8, "the exact permutation p of the same test", "so few seeds"),
        (17, "from 65536 sampled sign patterns", "exact permutation"),
    ],
)
def test_the_caption_of_the_claims_fits_the_number_of_seeds(seeds, wanted, never):
    caption = claims_caption(4, seeds)
    assert wanted in caption
    assert never not in caption
    assert "Holm-adjusted over 4 claims." in caption


# ---- every number with its floor, and gaps that show


def test_the_answer_says_how_much(page):
    assert (
        "Accuracy at the end of each arm, on evaluation test in band depth=2: mean over seeds, in brackets above the"
        " guessing floor. RL 0.100 (0.000) SFT-4 <b> 0.300 (0.222) SFT-8 0.900 (0.889)" in page.words
    )


def test_rates_stand_beside_their_floor_wherever_they_stand(fake, filled, built, page):
    # .8 / .9 = .889 above the floor; the checks' memory of 1.
    assert "0.800 (0.889)" in page.words
    assert "11: 1.000 (1.000)" in page.words
    main = next(attrs["aria-label"] for attrs in page.all("div") if attrs.get("role") == "img")
    assert "SFT-8 after RL 0.900 (0.889)" in main
    assert ">0.90 (0.89)<" in built  # the label in the figure
    rewards = [attrs["aria-label"] for attrs in page.all("div") if "reward per step" in attrs.get("aria-label", "")]
    assert all("guessing floor 0.100" in label for label in rewards)
    assert len(rewards) == 1
    collected = collect(fake.experiment(), fake.SCALE, filled)
    markdown = render_markdown(collected)
    assert "| SFT-8 | 0.900 | 0.889 | 3 |" in markdown
    assert "| 0.800 (0.889) |" in markdown
    assert "1.000 (1.000), 1.000 (1.000)" in markdown
    found = json.loads(findings_json(collected))
    assert found["findings"][0]["effect_above_floor"] == pytest.approx(0.8 / 0.9)
    assert found["checks"][0]["above_floor"] == [[11, 1.0], [12, 1.0], [13, 1.0]]
    assert dict(found["ends"]["rows"])["RL"]["raw"] == pytest.approx(0.1)


def test_a_missing_seed_shows_wherever_means_differ_in_their_seeds(fake, tmp_path):
    study, store = fake.experiment(), Store(tmp_path / "store")
    fake.fill(store, study, skip=lambda it: it == (12, "SFT-8", 2, "test"))
    text = build_report(study, fake.SCALE, store, tmp_path / "r.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.faults == []
    assert "1 stage or evaluation is missing; means are over the seeds that are there." in page.words
    assert "SFT-8 0.900 (0.889) n = 2" in page.words  # the answer
    assert ">0.90 (0.89), n = 2<" in text  # the figure
    assert "0.90 (0.89) n = 2" in page.words.split("By difficulty, before")[1]  # the table of bands
    assert "n = 2" in page.words.split("Compute")[-1].split("What was held equal")[0]  # the ledger
    assert all("open" not in attrs for attrs in page.all("details"))


def test_a_void_is_explained_once(fake, tmp_path):
    study, store = fake.experiment(claims=(fake.claim(), fake.claim(name="other"))), Store(tmp_path / "store")
    fake.fill(store, study, memory=0.5)
    words = Page(build_report(study, fake.SCALE, store, tmp_path / "r.html").read_text(encoding="utf-8")).words
    why = "is 0.500 in seed 11, 0.500 in seed 12, 0.500 in seed 13"
    assert words.count(why) == 2  # in the answer and at the check
    assert words.count("Void: the check 'memorised' failed.") == 2  # in the row of each claim


def test_a_bar_in_a_sentence_does_not_break_the_table_of_findings(fake, filled):
    claim = replace(fake.claim(), statement="RL | SFT gains <more>\nthan that.")
    check = replace(fake.CHECK, statement="Memory | of SFT.")
    collected = collect(fake.experiment(claims=(claim,), checks=(check,)), fake.SCALE, filled)
    lines = render_markdown(collected).splitlines()
    (row,) = (line for line in lines if "RL \\| SFT gains" in line)
    assert len(re.findall(r"(?<!\\)\|", row)) == 8  # seven columns
    assert "\\<more> than that." in row
    (row,) = (line for line in lines if "Memory \\| of SFT." in line)
    assert len(re.findall(r"(?<!\\)\|", row)) == 5


# ---- files are whole or not there


def test_a_directory_cannot_be_a_report(fake, filled, tmp_path):
    with pytest.raises(StoreError, match=rf"cannot write {tmp_path}: it is a directory"):
        build_report(fake.experiment(), fake.SCALE, filled, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_under_a_file_cannot_be_written(fake, filled, tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(StoreError, match=r"cannot write .*taken/report\.html"):
        build_report(fake.experiment(), fake.SCALE, filled, tmp_path / "taken" / "report.html")


@pytest.mark.parametrize("kind", ["text", "figure"])
def test_a_disk_that_fills_leaves_the_old_file_and_nothing_else(fake, filled, tmp_path, monkeypatch, kind):
    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    destination = tmp_path / "figure.svg"
    destination.write_text("as it was")
    monkeypatch.setattr("os.fsync", full)
    study = fake.experiment()
    results = load(study, fake.SCALE, filled)
    write = {
        "text": lambda: write_whole(destination, "new"),
        "figure": lambda: save_main_figure(study, results, destination),
    }[kind]
    with pytest.raises(StoreError, match=rf"cannot write {destination}: No space left on device"):
        write()
    assert destination.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [destination]
