"""With and without the KV cache: the same tokens; without it every step computes the whole text again."""

import sys

import tokenglass as tg

PROMPT = "A short story about a dog and a boat. " * 4

model = tg.load(*sys.argv[1:2])
cached = model.generate(PROMPT, max_tokens=32)
naive = model.generate(PROMPT, max_tokens=32, use_cache=False)
assert cached.ids == naive.ids

num_positions = len(cached.prompt_ids) + len(cached.ids)
kv_bytes = model.engine.model.kv_bytes_per_token
print(f"with the cache     {cached.timings.decode_tokens_per_s:7.1f} tokens/s")
print(f"without            {naive.timings.decode_tokens_per_s:7.1f} tokens/s")
print(f"it keeps           {kv_bytes:,} bytes a token, {num_positions * kv_bytes / 1e6:.1f} MB here")
