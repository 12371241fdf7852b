"""The loop by hand, with temperature and top-p: each step says what the settings left, and why this token."""

import sys

import tokenglass as tg

PROMPT = "Once upon a time there was a"

model = tg.load(*sys.argv[1:2])
step = model.step(PROMPT, temperature=0.8, top_p=0.9, seed=7)  # keeps the cache: a token costs one row
while len(step.taken_ids) < 12 and not step.is_ended:
    entropy = step.next().entropy
    choice = step.draw(trace_top=3)
    decision = choice.decision
    (top_p,) = decision.stages
    print(
        f"{model.detokenize([choice.token_id])!r:<12} rank {decision.rank:>3} of {top_p.survivors:>3} left "
        f"by top-p, surprisal {decision.surprisal_bits:5.2f} bits, entropy {entropy:.2f} nats"
    )
    step.take(choice.token_id)

print("\n" + PROMPT + step.text)
