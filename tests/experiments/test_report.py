"""The report is one sound page that says what the findings say, complete or not, the same for the same results."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from experiments.claims import register
from experiments.figures import save_main_figure
from experiments.report import build_report, collect, si
from experiments.results import load
from experiments.store import Store

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
    assert "Of 1 claim fixed before the first run: 1 supported, 0 refuted, 0 inconclusive." in page.words


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
        "Registered 2026-01-02T00:00:00+00:00",
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
    assert "24 gaps" in page.words


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


def test_another_number_of_seeds_has_its_own_command(fake, filled):
    study = fake.experiment()
    two = replace(fake.SCALE, seeds=2)
    assert collect(study, two, filled).commands[1] == "stagecraft run e99 --scale demo --seeds 2"


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
