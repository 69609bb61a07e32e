# Writes counts.json: counts of words of the texts in it by scikit-learn's CountVectorizer.
import json
from sklearn.feature_extraction.text import CountVectorizer

texts = ["The cat sat on the mat and the dog slept.", "A dog and a cat: the cat ran, the dog ran!", "Seven seas; the SEA was calm.",
         "Sun, sea and sand. The sun shone on the sea 24 hours.", "No word here is common", "cat dog sea sun"]
cases = []
for least, most in [(1, 1.0), (2, 1.0), (2, 0.5), (3, 0.67)]:
    v = CountVectorizer(min_df=least, max_df=most, token_pattern=r"\w+")
    counts = v.fit_transform(texts).toarray().tolist()
    cases.append({"least": least, "most": most, "words": v.get_feature_names_out().tolist(), "counts": counts})
json.dump({"texts": texts, "cases": cases}, open("counts.json", "w"), indent=None)
