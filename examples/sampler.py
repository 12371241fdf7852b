"""A sampler by hand, in numpy: temperature, then top-k, then top-p, then the draw."""

import sys

import numpy as np

import tokenglass as tg


def sample(logits, temperature, top_k, top_p, rng):
    """One id drawn from logits [vocab]."""
    order = np.argsort(-logits, kind="stable")[:top_k]  # [top_k], the best first
    p = np.exp((logits[order] - logits[order[0]]) / temperature)
    p /= p.sum()  # softmax over the k best
    keep = np.searchsorted(np.cumsum(p), top_p) + 1  # the token that reaches top_p stays in
    p = p[:keep] / p[:keep].sum()
    return int(order[rng.choice(len(p), p=p)])


model = tg.load(*sys.argv[1:2])
logits = model.next("My favourite colour is").logits.astype(np.float64)
rng = np.random.default_rng(1)
for temperature in (0.1, 0.7, 1.5):
    drawn = [sample(logits, temperature, top_k=50, top_p=0.95, rng=rng) for _ in range(200)]
    best = max(set(drawn), key=drawn.count)
    print(
        f"temperature {temperature}: {len(set(drawn)):>2} different tokens in 200 draws, "
        f"most often {model.detokenize([best])!r} ({drawn.count(best)} times)"
    )
