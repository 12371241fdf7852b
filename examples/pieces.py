"""The ids and pieces of 原子思维. SmolLM2's vocabulary is English: most characters are cut into bytes."""

import sys

import tokenglass as tg

model = tg.load(*sys.argv[1:2])
for text in ("原子思维", "atomic thinking"):
    tokens = model.tokenize(text)
    print(text)
    print("  ids    ", list(tokens.ids))
    print("  pieces ", list(tokens.pieces))
    print("  places ", list(tokens.offsets))
    print(f"  {len(text) / len(tokens):.2f} characters a token")
