"""Our decoder against transformers' ``LlamaForCausalLM``: one artifact directory, one thread, float32.

The peer gets every convenience that costs no correctness: it trains and scores without an attention mask (right-padded
causal rows need none), and ``generate`` need not report log-probabilities and entropies, which ours always does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import torch
from rich.table import Table
from torch import Tensor
from transformers import LlamaForCausalLM
from transformers import __version__ as transformers_version
from transformers.utils import logging

from benchmarks.side_by_side import Contender, Contest, contest, machine, rate, show
from experiments.e01_demonstrations import problems
from models import SIZES, PackedRows, Policy, Tokenizer, Transformer, completion_logp, initialise, pack, training_flops
from testbeds.streams import lanes, stream
from training import AdamW

MEASURED_SIZES: Final = ("0.1M", "1M")
TOKENIZER: Final = Tokenizer.of(problems(seed=1, depth=5).task.symbols)
FIRST_SYMBOL: Final = len(set(TOKENIZER.vocabulary) - set(TOKENIZER.symbols))  # the ids before it are special
BATCH: Final = 128  # rows of a training step
SHORTEST, LONGEST = 8, 15  # tokens of its rows
PROMPTS, GROUP, NEW_TOKENS = 32, 8, 8
LARGE: Final = 1024  # rows and columns of the product that stands for what the machine can do at all
TOLERANCE: Final = 1e-4  # nats: more would mean that the two do not compute the same thing


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The same weights, twice."""

    ours: Policy
    peer: LlamaForCausalLM


def load_pair(size: str) -> Pair:
    """A new policy of this size, and what transformers reads from its artifact directory, ready for evaluation."""
    ours = new_policy(size)
    with TemporaryDirectory() as directory:
        ours.save(Path(directory))
        peer = LlamaForCausalLM.from_pretrained(directory, dtype=torch.float32)
    return Pair(ours=ours, peer=peer)


def new_policy(size: str) -> Policy:
    """A policy of this size with new weights."""
    decoder = initialise(SIZES[size], TOKENIZER.size, torch.Generator().manual_seed(1))
    return Policy(decoder=decoder, tokenizer=TOKENIZER)


def token_rows(purpose: str, count: int, *, shortest: int, longest: int) -> list[list[int]]:
    """Rows of uniform symbols, their lengths uniform too."""
    rng = stream("benchmarks", purpose)
    lengths = rng.integers(shortest, longest + 1, count)
    return [rng.integers(FIRST_SYMBOL, TOKENIZER.size, length).tolist() for length in lengths]


def training_rows() -> PackedRows:
    """A training batch, every token but the first of a row a target."""
    rows = token_rows("training rows", BATCH, shortest=SHORTEST, longest=LONGEST)
    return pack([row[:1] for row in rows], [row[1:] for row in rows], TOKENIZER.pad)


def prompts() -> list[list[int]]:
    """Prompts of 5 to 8 tokens, each a whole group."""
    distinct = token_rows("prompts", PROMPTS, shortest=5, longest=8)
    return [prompt for prompt in distinct for _ in range(GROUP)]


def training_contest(pair: Pair) -> Contest:
    """Forward pass, loss, backward pass, fused AdamW; in tokens."""
    rows = training_rows()
    tokens = int(rows.length_B.sum())
    position_T = torch.arange(rows.token_BT.shape[1])
    label_BT = rows.token_BT.masked_fill(position_T >= rows.length_B[:, None], -100)  # what the peer calls padding
    peer = pair.peer.train()

    def peer_loss() -> Tensor:
        loss: Tensor = peer(input_ids=rows.token_BT, labels=label_BT, use_cache=False).loss
        return loss

    our_loss = mean_loss(pair.ours, rows)
    require_equal(our_loss(), peer_loss(), "the losses of a training batch")
    declared = AdamW(rate=1e-3)
    return contest(
        step(our_loss, declared.build(pair.ours.decoder), amount=tokens),
        step(peer_loss, declared.build(peer), amount=tokens),
    )


def mean_loss(policy: Policy, rows: PackedRows) -> Callable[[], Tensor]:
    """The cross-entropy that stages compute, in nats per target."""

    def loss() -> Tensor:
        scores = completion_logp(policy.decoder, rows)
        return -scores.logp_BC.sum() / scores.mask_BC.sum()

    return loss


def step(loss: Callable[[], Tensor], optimizer: torch.optim.Optimizer, *, amount: float) -> Contender:
    """A training step, which counts for ``amount``."""

    def contender() -> float:
        optimizer.zero_grad()
        torch.autograd.backward(loss())
        optimizer.step()
        return amount

    return contender


def sampling_contest(pair: Pair) -> Contest:
    """Sampling at temperature 1 with a cache of keys and values, from prompts of unequal lengths; in sampled tokens."""
    ours, peer = pair.ours, pair.peer
    asked = prompts()
    lane_B = lanes("benchmarks", "rollouts", rows=PROMPTS, columns=GROUP).reshape(-1)
    width = max(map(len, asked))
    token_BT = torch.tensor([[TOKENIZER.pad] * (width - len(prompt)) + prompt for prompt in asked])
    mask_BT = (token_BT != TOKENIZER.pad).long()
    torch.manual_seed(1)  # ``generate`` draws from the global generator and takes no other

    def our_completions() -> float:
        return int(ours.sample(asked, lanes=lane_B, max_new_tokens=NEW_TOKENS).mask_BT.sum())

    def peer_completions() -> float:
        written_BT = peer.generate(
            input_ids=token_BT, attention_mask=mask_BT, do_sample=True, top_k=0, max_new_tokens=NEW_TOKENS
        )
        return int((written_BT[:, width:] != TOKENIZER.pad).sum())

    return contest(our_completions, peer_completions)


def scoring_contest(pair: Pair) -> Contest:
    """Log-probabilities of given completions, from lists of token ids to one number a row; in tokens read."""
    ours, peer = pair.ours, pair.peer
    asked = prompts()
    answers = token_rows("completions", len(asked), shortest=4, longest=NEW_TOKENS)
    tokens = sum(map(len, asked)) + sum(map(len, answers))

    def our_logp() -> Tensor:
        return ours.score(asked, answers).total_logp_B

    @torch.no_grad()
    def peer_logp() -> Tensor:
        rows = pack(asked, answers, TOKENIZER.pad)
        logp_BTV = peer(input_ids=rows.token_BT, use_cache=False).logits.log_softmax(-1)
        logp_BT = logp_BTV.gather(-1, rows.target_BT[..., None])[..., 0]
        return torch.where(rows.target_mask_BT, logp_BT, 0.0).sum(1)

    require_equal(our_logp(), peer_logp(), "the scores of completions")
    return contest(counted(our_logp, tokens), counted(peer_logp, tokens))


def counted(work: Callable[[], object], amount: float) -> Contender:
    """Work that counts for ``amount``."""

    def contender() -> float:
        work()
        return amount

    return contender


def require_equal(ours: Tensor, peer: Tensor, what: str) -> None:
    """Refuse to time two things that do not compute the same."""
    gap = float((ours - peer).detach().abs().max())
    if not gap < TOLERANCE:  # also where the gap is NaN
        raise RuntimeError(f"{what} differ by {gap:.2g} nats (allowed: {TOLERANCE}); their speeds cannot be compared")


def products_contest(policy: Policy) -> Contest:
    """A training step against its matrix products alone, padding left out of the step's work; in FLOPs."""
    rows = training_rows()
    flops = training_flops(policy.decoder.architecture, TOKENIZER.size, rows.length_B.tolist())
    optimizer = AdamW(rate=1e-3).build(policy.decoder)
    ours = step(mean_loss(policy, rows), optimizer, amount=flops)
    return contest(ours, products(policy.decoder.architecture, rows.token_BT.numel()))


def products(model: Transformer, tokens: int) -> Contender:
    """The matrix products of a training step with the weights, forward and backward, and nothing else; in FLOPs."""
    width, inner, kv_width = model.width, model.inner_width, model.key_value_heads * model.head_width
    block = [(width, width)] * 2 + [(width, kv_width)] * 2 + [(width, inner)] * 2 + [(inner, width)]
    shapes = block * model.layers + [(width, TOKENIZER.size)]
    generator = torch.Generator().manual_seed(1)
    factors = [
        tuple(torch.randn(shape, generator=generator) for shape in ((tokens, wide), (out, wide), (tokens, out)))
        for wide, out in shapes
    ]

    def multiply() -> None:
        for x_TD, weight_OD, gradient_TO in factors:
            x_TD @ weight_OD.t()
            gradient_TO @ weight_OD
            gradient_TO.t() @ x_TD

    return counted(multiply, 3 * 2 * tokens * sum(wide * out for wide, out in shapes))


def large_product() -> Contender:
    """One large square product; in FLOPs."""
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(LARGE, LARGE, generator=generator), torch.randn(LARGE, LARGE, generator=generator)
    return counted(lambda: x @ y, 2 * LARGE**3)


def main() -> None:
    """Print the two tables."""
    torch.set_num_threads(1)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers does not annotate it
    speeds = Table("", "size", "ours", "transformers", "ours, wall", "transf., wall", "ours / transf. (range)")
    shares = Table("training step", "GFLOP/s", "its products alone", f"{LARGE} x {LARGE}", "step / products (range)")
    best = rate(large_product())
    for size in MEASURED_SIZES:
        speeds.add_row("training step", size, *speed_cells(training_contest(load_pair(size))))
        speeds.add_row("sampling", size, *speed_cells(sampling_contest(load_pair(size))))
        speeds.add_row("scoring", size, *speed_cells(scoring_contest(load_pair(size))))
        shares.add_row(size, *share_cells(products_contest(new_policy(size)), best))
    show(speeds, "Tokens per second of CPU time, where it says wall of wall time.", "")
    show(shares, f"python -m benchmarks.policy: {machine()}, transformers {transformers_version}, one thread")


def speed_cells(result: Contest) -> tuple[str, ...]:
    """Tokens per second of either, by CPU and by wall time, and the ratio."""
    return (
        f"{median(one.rate for one in result.ours):,.0f}",
        f"{median(one.rate for one in result.peer):,.0f}",
        f"{median(one.wall_rate for one in result.ours):,.0f}",
        f"{median(one.wall_rate for one in result.peer):,.0f}",
        result.ratio(),
    )


def share_cells(result: Contest, best: float) -> tuple[str, ...]:
    """Rates of a step, of its products alone, of a large product, and what share of the second the first reaches."""
    giga = [median(one.rate for one in rounds) / 1e9 for rounds in (result.ours, result.peer)]
    return f"{giga[0]:.0f}", f"{giga[1]:.0f}", f"{best / 1e9:.0f}", result.ratio()


if __name__ == "__main__":
    main()
