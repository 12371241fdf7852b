"""Where an answer ends: at the length limit, at a stop string (which is not shown), or at an end token."""

import sys

import tokenglass as tg

model = tg.load(*sys.argv[1:2])
for options in ({"max_tokens": 5}, {"stop": "\n"}, {"stop": [" and", "."]}):
    generation = model.generate("The capital of France is", **options)
    print(f"{options!s:<28} {generation.text!r} ({generation.finish_reason})")

answer = model.generate([{"role": "user", "content": "What is 2 + 2?"}], max_tokens=100)
end = answer.ids[-1]
print(
    f"{'chat':<28} {answer.text!r} ({answer.finish_reason}: token {end}, {model.vocabulary.token_text(end)})"
)
