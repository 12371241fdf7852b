"""The loop as one call, with the numbers most tutorials use. The same seed gives the same text."""

import sys

import tokenglass as tg

model = tg.load(*sys.argv[1:2])
for seed in (1, 2, 1):
    generation = model.generate(
        "The meaning of life is", max_tokens=30, top_k=50, top_p=0.95, temperature=0.8, seed=seed
    )
    print(f"seed {seed}: {str(generation)!r}")

print("\nfinish reason:", generation.finish_reason)
print("usage:        ", generation.usage, "=", generation.usage.total_tokens, "tokens")
