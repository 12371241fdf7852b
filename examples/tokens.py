"""The tokens of a sentence in Chinese and English: id, bytes, and the characters each one stands on."""

import sys

import tokenglass as tg

TEXT = "大模型 predicts the next token，一次一个。"

model = tg.load(*sys.argv[1:2])
tokens = model.tokenize(TEXT)
print(f"{len(TEXT)} characters, {len(TEXT.encode())} bytes, {len(tokens)} tokens of {model.name}\n")
for token in tokens:
    place = TEXT[token.start : token.end]
    print(f"{token.id:>6}  {token.bytes.hex(' '):<20} in {place!r}")

print("\nback again:", model.detokenize(tokens.ids))
