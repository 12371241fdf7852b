"""The loop by hand: score, take the best, append, repeat. `generate` gives the same tokens."""

import sys

import tokenglass as tg

PROMPT = "The capital of France is"

model = tg.load(*sys.argv[1:2])
ids = list(model.tokenize(PROMPT).ids)
for _ in range(8):
    best = int(model.next(ids).logits.argmax())  # computes the whole text each time: see cache.py
    ids.append(best)
    print(f"{best:>6}  {model.detokenize([best])!r}")
    if best in model.vocabulary.end_ids:
        break

print("\nby hand: ", repr(model.detokenize(ids)))
print("generate:", repr(PROMPT + model.generate(PROMPT, max_tokens=8).text))
