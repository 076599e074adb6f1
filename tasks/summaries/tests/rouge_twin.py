"""ROUGE-1, -2 and -L as Lin's paper defines them, by the shortest way to write them down, of random
sequences of numbers; prints sequences and scores."""
import json
import random
from collections import Counter
from functools import lru_cache


def f1(both, candidate, reference):
    if both == 0:
        return 0.0
    precision, recall = both / candidate, both / reference
    return 2 * precision * recall / (precision + recall)


def by_grams(n, candidate, reference):
    def grams(words):
        return Counter(tuple(words[i:i + n]) for i in range(len(words) - n + 1))
    one, other = grams(candidate), grams(reference)
    return f1(sum((one & other).values()), sum(one.values()), sum(other.values()))


def by_order(candidate, reference):
    @lru_cache(maxsize=None)
    def longest(i, j):
        if i == len(candidate) or j == len(reference):
            return 0
        if candidate[i] == reference[j]:
            return 1 + longest(i + 1, j + 1)
        return max(longest(i + 1, j), longest(i, j + 1))
    return f1(longest(0, 0), len(candidate), len(reference))


draw = random.Random(2)
cases = []
for _ in range(300):
    words = draw.choice([2, 4, 12])
    candidate, reference = ([draw.randrange(words) for _ in range(draw.randrange(15))] for _ in range(2))
    cases.append({"candidate": candidate, "reference": reference,
                  "scores": [by_grams(1, candidate, reference), by_grams(2, candidate, reference),
                             by_order(candidate, reference)]})
print(json.dumps(cases))
