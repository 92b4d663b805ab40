"""Makes a small tokenizer file of XLM-RoBERTa's kind: Unigram, and <s> ... </s> around a text."""

import itertools
import string
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
WORDS = ("▁the", "ing", "er", "知识", "检索", "文档", "数据", "系统")
CHINESE = (
    "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学"
)


def write_tokenizer(folder: Path, size: int = 0) -> Path:
    """Write tokenizer.json: words, letters and some Chinese characters; the rest is <unk>.

    Filled up to `size` with words that no test has, for its weight alone.
    """
    special = [(token, 0.0) for token in SPECIAL]
    characters = dict.fromkeys(
        "▁" + string.ascii_letters + string.digits + "。，？?.,;:|-#" + CHINESE
    )
    vocabulary = [*((word, -2.0) for word in WORDS), *((one, -4.0) for one in characters)]
    rare = ("".join(letters) for letters in itertools.product("αβγδεζηθικλμνξοπρστυφχψω", repeat=4))
    missing = size - len(special) - len(vocabulary)
    vocabulary += [(word, -9.0) for word in itertools.islice(rare, max(missing, 0))]
    tokenizer = Tokenizer(models.Unigram([*special, *vocabulary], unk_id=SPECIAL.index("<unk>")))
    tokenizer.normalizer = normalizers.NFKC()
    split, mark = pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, mark])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        special_tokens=[(token, SPECIAL.index(token)) for token in ("<s>", "</s>")],
    )
    # Exports often come with such settings; the loader must not keep them.
    tokenizer.enable_truncation(16)
    tokenizer.enable_padding(pad_id=SPECIAL.index("<pad>"), pad_token="<pad>")
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    return path
