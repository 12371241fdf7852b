"""The score of every token that could follow 天空是 ("the sky is"), and what a temperature makes of it.

SmolLM2 is an English model, and it shows: compare with the English prompt, or give a Chinese model.
"""

import sys

import tokenglass as tg

model = tg.load(*sys.argv[1:2])
for prompt in ("天空是", "The sky is"):
    distribution = model.next(prompt, top=5)
    print(f"{prompt!r}: logits {distribution.logits.shape} {distribution.logits.dtype}")
    print(distribution, "\n")

for temperature in (0.2, 0.7, 1.5):  # the same logits, no further forward pass
    best = distribution.temperature(temperature).top(1)[0]
    print(f"temperature {temperature}: {best.text!r} has {best.probability:.1%}")
