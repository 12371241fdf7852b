"""Texts the model tests run on: English, code, Chinese and symbols, long enough for 300 tokens."""

GREEDY_PROMPTS = ("The capital of France is", "Once upon a time, a small robot", "def fibonacci(n):\n")

LONG_TEXT = """A language model reads text as a list of tokens and gives each token of its vocabulary a score.
The scores become probabilities, one token is chosen, and the text grows by that one token. Then it all begins
again. Nothing else happens, and yet stories, answers and programs come out of it.

def greedy(scores):
    best = 0
    for i, score in enumerate(scores):
        if score > scores[best]:
            best = i
    return best

语言模型一次只写一个词元。它给词表里的每个词元打分，再从中选出一个，接到文字的末尾，然后重新开始。
The cache keeps the keys and values of all earlier positions, so each step costs one row and not the whole
text. 1 + 1 = 2; 3 * 4 = 12; 100 / 8 = 12.5. "Where are you going?" she asked. "Home," he said, "before it
rains." The road was long, the sky was grey, and somewhere behind the hills a train was whistling as it does
every evening at six. Prices: $4.20, €3,99, ¥1,000. E-mail: someone@example.org. 🚂🌧️
"""
