"""Tokens a second. Prefill reads the prompt many tokens at a time; decode makes one token a forward pass."""

import sys

import tokenglass as tg

model = tg.load(*sys.argv[1:2])
prompt = "The history of the sea is long. " * 16
timings = model.generate(prompt, max_tokens=64).timings
print(f"prompt       {timings.prompt_tokens} tokens in {timings.time_to_first_token_s:.2f} s")
print(f"answer       {timings.output_tokens} tokens, {timings.forward_passes} forward passes")
print(f"prefill      {timings.prefill_tokens_per_s:.0f} tokens/s")
print(f"decode       {timings.decode_tokens_per_s:.0f} tokens/s")
print(f"overall      {timings.tokens_per_s:.0f} tokens/s")
