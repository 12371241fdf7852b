"""Several turns: the whole conversation goes through the model's chat template each time, and grows."""

import sys

import tokenglass as tg

model = tg.load(*sys.argv[1:2])
messages = [{"role": "system", "content": "You answer in one short sentence."}]
for question in ("What is the capital of France?", "And which river runs through it?"):
    messages.append({"role": "user", "content": question})
    answer = model.generate(messages, max_tokens=60)
    messages.append({"role": "assistant", "content": answer.text})
    print(f"> {question}\n{answer}")
    print(f"  ({answer.usage.prompt_tokens} prompt tokens of a window of {model.context_length})")
