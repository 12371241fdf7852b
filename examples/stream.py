"""Text as it is made. A character of several tokens comes out once, when it is whole."""

import sys

import tokenglass as tg

model = tg.load(*sys.argv[1:2])
for piece in model.stream("Roses are red, violets are", max_tokens=20):
    print(piece.text, end="", flush=True)
    if piece.finish_reason:
        print(f"\n({piece.finish_reason}: {piece.timings.output_tokens} tokens)")

print([(piece.token_ids[0], piece.text) for piece in model.stream("天空是", max_tokens=8)])
