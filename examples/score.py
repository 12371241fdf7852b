"""How likely is a sentence? The log-probability of each token given those before it, and the perplexity."""

import sys

import tokenglass as tg

model = tg.load(*sys.argv[1:2])
print(model.score("The cat sat on the mat."), "\n")
for text in (
    "Paris is the capital of France.",
    "Paris is the capital of Spain.",
    "France capital the of is.",
):
    score = model.score(text)
    print(f"perplexity {score.perplexity:9.1f}   ln p {score.total_logprob:7.1f}   {text}")
