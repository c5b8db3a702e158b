#!/usr/bin/env python3
"""Writes tokenizer_cases.json: small vocabularies trained on the text below, each with what the reference makes of some texts.
Needs the tokenizers, sentencepiece and protobuf packages; run it only to change the cases."""
import base64
import json
import os
import random
import tempfile

import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

CORPUS = """The quick brown fox jumps over the lazy dog, and the dog sleeps. Pack my box with five dozen jugs of liquor!
Numbers like 12, 345 and 3.14159 are cut as the rules say; so are words: don't, can't, we'll, it's.
Straße, Ünïcödé, naïve café, ÀÉÎ, Привет мир, как дела? 中文字符 日本語テスト 🦆 duck
the theory of the thing is that there is nothing other than these three things in the theatre""".split("\n") * 20

SPECIAL = ["<unk>", "<s>", "</s>"]
ADDED = [{"content": "[x]", "normalized": True, "special": False}, {"content": "<sep>", "lstrip": True, "normalized": False, "special": True}]


def texts():
    rng = random.Random(7)
    words = " ".join(CORPUS).split()
    letters = "abc ABC  \t\n.,'\u2581éÀß中テПр🦆\u0301\u0323ﬁ①½Ａ\u3000\u00a0ǅİ<>[]x01-_\u200b"
    result = ["", " ", "  ", "\n", "a", " a", "a ", "  a  b  ", "Hello world", "the the  the", "<s>a</s> b", "a [x] b<sep> [x]", "ab <sep>cd",
              "\u2581a", "zzz🦆zzz", "don't stop", "\u212bngstr\u00f6m e\u0301 \ufb01", "a\u3000b\u00a0c"]
    result += [rng.choice([" ", "  ", "\n", ""]).join(rng.choice(words) for _ in range(rng.randint(1, 8))) for _ in range(25)]
    result += ["".join(rng.choice(letters) for _ in range(rng.randint(1, 16))) for _ in range(40)]
    return result


def with_added(tokenizer, byte_fallback):
    if byte_fallback:
        vocab = tokenizer["model"]["vocab"]
        vocab[3:3] = [[f"<0x{byte:02X}>", -15.0] for byte in range(256)]
        tokenizer["model"]["byte_fallback"] = True
    count = len(tokenizer["model"]["vocab"])
    flags = {"single_word": False, "lstrip": False, "rstrip": False}
    tokenizer["added_tokens"] += [flags | added | {"id": count + i} for i, added in enumerate(ADDED)]
    return tokenizer


def unigram(normalizer, pre_tokenizer, decoder, byte_fallback=False):
    tokenizer = Tokenizer(models.Unigram())
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder
    trainer = trainers.UnigramTrainer(vocab_size=130, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return with_added(json.loads(tokenizer.to_str()), byte_fallback)


def bpe(pre_tokenizer, decoder, **trainer):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, decoder
    trainer = trainers.BpeTrainer(vocab_size=380, special_tokens=SPECIAL, show_progress=False, **trainer)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return with_added(json.loads(tokenizer.to_str()), False)


def case(tokenizer):
    reference = Tokenizer.from_str(json.dumps(tokenizer))
    cases = []
    for text in texts():
        ids = reference.encode(text, add_special_tokens=False).ids
        cases.append({"text": text, "ids": ids, "decoded": reference.decode(ids, skip_special_tokens=False)})
    return {"tokenizer": tokenizer, "cases": cases}


def train_sentencepiece(folder, vocab_size, **settings):
    corpus = os.path.join(folder, "corpus.txt")
    with open(corpus, "w", encoding="utf-8") as file:
        file.write("\n".join(CORPUS))
    sentencepiece.SentencePieceTrainer.train(input=corpus, model_prefix=f"{folder}/m", vocab_size=vocab_size, model_type="unigram",
                                             hard_vocab_limit=False, minloglevel=2, **settings)
    with open(f"{folder}/m.model", "rb") as file:
        return file.read()


def sentencepiece_case(**settings):
    with tempfile.TemporaryDirectory() as folder:
        rules = os.path.join(folder, "rules.tsv")
        with open(rules, "w", encoding="utf-8") as file:  # code points in hexadecimal: a sequence, and what replaces it
            file.write("41\t61\nA0\t20\n3000\t20\n9\t20\nA\t20\nFB01\t66 69\n65 301\tE9\n2460\t31\n200B\t\n")
        model = train_sentencepiece(folder, normalization_rule_tsv=rules, **settings)
    reference = sentencepiece.SentencePieceProcessor(model_proto=model)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    rules = proto.normalizer_spec
    return {"tokens": [piece.piece for piece in proto.pieces], "scores": [piece.score for piece in proto.pieces],
            "types": [piece.type for piece in proto.pieces], "add_space_prefix": rules.add_dummy_prefix,
            "remove_extra_whitespaces": rules.remove_extra_whitespaces,
            "precompiled_charsmap": list(rules.precompiled_charsmap),
            "cases": [{"text": text, "ids": reference.encode(text)} for text in texts()]}, rules.precompiled_charsmap


def main():
    n, p, d = normalizers, pre_tokenizers, decoders
    bytes_then_spaces = d.Sequence([d.ByteFallback(), d.Metaspace(), d.Fuse()])
    sentencepiece_spaces = d.Sequence([d.Replace("\u2581", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)])
    plain, character_map = sentencepiece_case(vocab_size=150, remove_extra_whitespaces=True)
    with_bytes, _ = sentencepiece_case(vocab_size=400, remove_extra_whitespaces=False, byte_fallback=True)
    tokenizers_cases = {
        "metaspace": unigram(None, p.Metaspace(), d.Metaspace()),
        "byte_fallback": unigram(n.NFKC(), p.Metaspace(), bytes_then_spaces, byte_fallback=True),
        "first": unigram(n.NFC(), p.Metaspace(prepend_scheme="first"), d.Metaspace(prepend_scheme="first")),
        "never": unigram(n.Sequence([n.NFD(), n.StripAccents(), n.Lowercase()]), p.Metaspace(prepend_scheme="never"), d.Metaspace(prepend_scheme="never")),
        "one_piece": unigram(n.Sequence([n.Strip(), n.Lowercase()]), p.Metaspace(split=False), d.Metaspace(split=False)),
        "t5": unigram(n.Sequence([n.NFKD(), n.Strip(left=False, right=True), n.Replace(Regex(" {2,}"), "\u2581")]),
                      p.Sequence([p.WhitespaceSplit(), p.Metaspace()]), d.Metaspace()),
        "sentencepiece": unigram(n.Sequence([n.Replace(" ", "\u2581")]), None, sentencepiece_spaces, byte_fallback=True),
        "character_map": unigram(n.Sequence([n.Precompiled(character_map), n.Replace(Regex(" {2,}"), " ")]), p.Metaspace(), d.Metaspace()),
        "bpe_metaspace": bpe(p.Metaspace(prepend_scheme="first"), d.Metaspace(prepend_scheme="first"), limit_alphabet=60),
        "bpe_prefix_space": bpe(p.ByteLevel(add_prefix_space=True), d.ByteLevel(), initial_alphabet=p.ByteLevel.alphabet()),
    }
    data = {"tokenizers": tokenizers.__version__, "sentencepiece": sentencepiece.__version__,
            "tokenizer_json": {name: case(tokenizer) for name, tokenizer in tokenizers_cases.items()},
            "gguf": {"spaces_removed": plain, "byte_fallback": with_bytes}}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizer_cases.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


main()
