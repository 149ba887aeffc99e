#!/usr/bin/env python3
"""Writes tests/data/token_vectors.jsonl: phrases with the ids that the reference's tokeniser gives.

Needs PyPI's sam3 (the tokeniser), ftfy, regex, torch and open_clip_torch (the vocabulary). Not needed to run the tests.
Line 1 says where the rest comes from. Every other line is [kind, phrase, context, ids] or ["deviation", phrase, context, ids, reason]: there
the reference repairs text that was decoded in the wrong encoding, which Stencil does not, and `ids` are those without that repair.
"""
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import random
import sys
import unicodedata
import unittest.mock

import ftfy

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "data", "token_vectors.jsonl")


def package_dir(name):
    return importlib.util.find_spec(name).submodule_search_locations[0]


def reference_module():
    """sam3/model/tokenizer_ve.py alone: the package's own __init__ wants everything that training needs."""
    spec = importlib.util.spec_from_file_location("tokenizer_ve", os.path.join(package_dir("sam3"), "model", "tokenizer_ve.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


VOCAB = os.path.join(package_dir("open_clip"), "bpe_simple_vocab_16e6.txt.gz")
rng = random.Random(20260101)

COLOURS = "red blue green yellow white black striped shiny wooden broken tall small old parked flying two 3".split()
NOUNS = """person dog cat forklift school bus traffic light fire hydrant coffee mug laptop keyboard bicycle wheel tree leaf bird bottle cup knife
fork spoon bowl banana apple sandwich orange broccoli carrot pizza donut cake chair couch plant bed table toilet tv mouse remote phone microwave oven
toaster sink refrigerator book clock vase scissors teddy bear hair drier toothbrush helmet vest pallet crane excavator cone zebra giraffe""".split()
JOINERS = ["with", "in", "on", "next to", "behind", "holding", "without", "&", "and", "of"]
ACCENTED = ["café", "naïve", "jalapeño", "crème brûlée", "smörgåsbord", "Ångström", "señor", "façade", "über", "Łódź", "Škoda", "garçon", "piñata"]
FOREIGN = ["日本の車", "赤い自動車", "自行车", "한국 자동차", "красная машина", "Красная МАШИНА", "κόκκινο αυτοκίνητο", "ΟΔΥΣΣΕΥΣ", "ΣΑΣ ΣΑΣ.", "ΑΣ'Α",
           "سيارة حمراء", "מכונית אדומה", "लाल गाड\u093cी", "รถส\u0e35แดง", "ქართული", "հայերեն", "አማርኛ", "မြန\u103aမာ", "ខ\u17d2មែរ", "İSTANBUL", "ISPARTA ılgaz", "ﷺ", "ß ẞ"]
EMOJI = ["🙂", "🐱", "👩\u200d👩\u200d👧\u200d👦", "🏴\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f", "❤\ufe0f", "☂", "⭐", "🇫🇷", "👍🏽", "⌚", "♥", "✔", "1\ufe0f\u20e3"]
PUNCT = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
ODD = ["“", "”", "‘", "’", "‛", "ʼ", "„", "«", "»", "…", "–", "—", "―", "•", "™", "©", "½", "²", "№", "Ⅷ", "ⅷ", "①", "Ⓐ", "ﬁ", "ﬂ", "ﬃ", "ﬆ", "ﬅ",
       "ǆ", "ǅ", "ĳ", "Ĳ", "ŉ", "ſ", "\u3000", "Ａ", "ｂ", "３", "！", "＇", "＂", "＜", "ｱ", "ﾞ", "ﾡ", "￣", "￠", "\u00a0", "\u2003", "\u2028", "\u200b", "\u200d",
       "\u200e", "\ufeff", "\u0301", "\u0327", "\u0345", "\u0130", "\u212a", "\u212b", "\u0958", "\ufb1d", "\U0001d15e", "\uac00", "\u1100\u1161\u11a8",
       "\x1b[31m", "\x1b[0;1m", "\x1b[", "\x07", "\x00", "\x7f", "\x85", "\x91", "\x81", "\r\n", "\r", "\n", "\t", "\x0b", "\x0c", "\ufffc", "\u206a"]
ENTITIES = ["&amp;", "&lt;", "&gt;", "&quot;", "&nbsp;", "&eacute;", "&EACUTE;", "&szlig;", "&SZLIG;", "&FILIG;", "&NAPOS;", "&copy", "&COPY;", "&notit;",
            "&not", "&hellip;", "&#8217;", "&#x2019;", "&#39;", "&#0;", "&#x110000;", "&#xD800;", "&#128;", "&#145;", "&#x1F600;", "&#59;", "&#12abc;", "&;",
            "&#;", "&#x;", "&unknown;", "&CounterClockwiseContourIntegral;", "&NotEqualTilde;", "&fjlig;", "&FJLIG;", "&ntilde", "&Ntilde;", "&nTILDE;", "&amp;amp;",
            "&amp;amp;amp;lt;", "&amp;#38;amp;", "&ＡＭＰ；", "&AMP", "&#x26;lt;", "&frac12;", "&FRAC12;", "&check;", "&lang;", "&acE;", "&#1;", "&#xFFFE;", "&#13;", "&ampersand"]
SPECIAL = ["<start_of_text>", "<end_of_text>", "<START_OF_TEXT>", "<\u017ftart_of_text>", "<end_of_text", "< end_of_text>", "a<end_of_text>b", "!<start_of_text>",
           "'s", "'S", "'\u017f", "'t 're 've 'm 'll 'd", "I'LL they'Re we'VE", "dog's", "dogs'", "rock'n'roll", "''s", "'sd", "'l", "’s", "o'clock", "can't've"]

MOJIBAKE = ["cafÃ©", "l’humanitÃ©", "naÃ¯ve", "â€œquotedâ€\x9d", "RÃ©sumÃ© on a desk", "voilÃ  le travail", "Ð¼Ð°ÑˆÐ¸Ð½Ð°", "æ—¥æœ¬", "ðŸ™‚", "sÃ³", "Ã¼ber cool",
            "donâ€™t walk", "â˜º", "Ãngstrom", "Â©", "10 Âµm"]


def noun_phrase():
    words = [rng.choice(NOUNS) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.6:
        words.insert(0, rng.choice(COLOURS))
    if rng.random() < 0.3:
        words += [rng.choice(JOINERS), rng.choice(["a", "the", "his", ""]), rng.choice(NOUNS)]
    text = " ".join(words)
    return rng.choice([text, text, text.title(), text.upper(), "the " + text, " " + text + "  "])


def soup(pools, lo, hi, glue=("", " ")):
    return "".join(rng.choice(rng.choice(pools)) + rng.choice(glue) for _ in range(rng.randint(lo, hi)))


def assigned(lo, hi):
    while True:
        c = rng.randrange(lo, hi)
        # the reference's regex knows newer characters than Python's tables; both agree on Unicode 14
        if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co"):
            return chr(c)


def phrases():
    for text in ["", " ", "visual", "cat", "a dog", "ear", "dial", "handle", "laptop", "person", "shoe", "yellow school bus", "player in white",
                 "the man's red hat", "2 cats", "1234", "x-ray!", "a!b", "!!", "!=", "!☃", "a_b", "$!5", "I'LL", "o'clock", "Café", "naïve", "日本", "🙂",
                 "İstanbul"]:
        yield "spec", text, 32
    yield "spec", "cat " * 40, 32
    for text in MOJIBAKE:
        yield "mojibake", text, 32
    for i in range(500):
        yield "nouns", noun_phrase(), 32
    for text in ACCENTED + FOREIGN + EMOJI + ODD + ENTITIES + SPECIAL:
        yield "single", text, 32
        yield "single", "a " + text + " cat", 32
        yield "single", "A" + text + "B", 32
        yield "accent", unicodedata.normalize("NFD", text), 32
    for i in range(120):
        yield "punctuation", "".join(rng.choice(PUNCT + "!!!''") for _ in range(rng.randint(1, 12))), 77
    for i in range(60):
        yield "digits", "".join(rng.choice("0123456789 .,-x") for _ in range(rng.randint(1, 12))), 77
    for i in range(150):
        yield "unicode", soup([ODD, ACCENTED, FOREIGN, EMOJI, NOUNS], 1, 6), 77
    for i in range(120):
        yield "entities", soup([ENTITIES, NOUNS, PUNCT], 1, 6), 77
    for i in range(80):
        yield "special", soup([SPECIAL, NOUNS, PUNCT, ["<", "\n"]], 1, 6), 77
    for i in range(150):
        yield "points", "".join(assigned(0x80, 0x3000) for _ in range(rng.randint(1, 8))), 77
    for i in range(100):
        yield "points", "".join(assigned(0x3000, 0x20000) for _ in range(rng.randint(1, 8))), 77
    for i in range(60):
        marks = "".join(assigned(0x300, 0x370) for _ in range(rng.randint(1, 40)))
        yield "marks", rng.choice("aeionsuAEΣσ") + marks + rng.choice(["", "x", "Σ"]), 256
    for i in range(60):
        yield "long", " ".join(noun_phrase() for _ in range(rng.randint(8, 30))), rng.choice([32, 77, 2, 3, 256])
    for i in range(25):
        yield "word", "".join(rng.choice("abcdefghijklmnopqrstuvwxyzee") for _ in range(rng.randint(20, 400))), 512
    for i in range(15):
        yield "word", rng.choice(["a", "ab", "na", "!", "ha", "é", "日", "!?"]) * rng.randint(1, 300), 1024


def main():
    tokenizer = reference_module().SimpleTokenizer(bpe_path=VOCAB, context_length=32)
    encode = lambda text, context: [i for i in tokenise(tokenizer, text, context)]
    lines, n_deviations, seen = [], 0, set()
    for kind, text, context in phrases():
        if (text, context) in seen or any(0xD800 <= ord(c) < 0xE000 for c in text):
            continue
        seen.add((text, context))
        ids = encode(text, context)
        with unittest.mock.patch.object(ftfy, "fix_encoding", lambda t, *a: t):
            plain = encode(text, context)
        if plain == ids:
            lines.append([kind, text, context, ids])
        else:
            n_deviations += 1
            lines.append(["deviation", text, context, plain, "the reference takes this for wrongly decoded text and repairs it"])
    versions = {p: importlib.metadata.version(p) for p in ("sam3", "ftfy", "regex", "open_clip_torch")}
    versions["python"] = sys.version.split()[0]
    versions["unicode"] = unicodedata.unidata_version
    script = hashlib.sha256(open(os.path.abspath(__file__), "rb").read()).hexdigest()
    with open(OUT, "w", encoding="ascii") as out:
        out.write(json.dumps({"made_by": "tests/reference/make_token_vectors.py", "script_sha256": script, "versions": versions,
                              "n": len(lines), "n_deviations": n_deviations}) + "\n")
        for line in lines:
            out.write(json.dumps(line) + "\n")
    print(len(lines), "phrases,", n_deviations, "of them deviations")


def tokenise(tokenizer, text, context):
    """SimpleTokenizer.__call__ without the padding (0 is also a token)."""
    ids = [tokenizer.sot_token_id] + tokenizer.encode(text) + [tokenizer.eot_token_id]
    padded = tokenizer(text, context_length=context)[0].tolist()
    assert padded[: len(ids)] == ids[:context] or len(ids) > context
    return padded[: min(len(ids), context)]


if __name__ == "__main__":
    main()
