"""Whether an int8 model still says what the fp32 model says."""

import numpy as np
from model import Encoder

LEAST_COSINE = 0.96
"""Between the fp32 and the int8 vector of one text; below it the build fails."""
SAMPLES = (
    "怎么重置密码？",
    "How do I rotate the API keys?",
    "年假按入职年限计算：满一年五天，满十年十天，未休完的天数可以顺延到次年三月。",
    "The pump stops when the pressure stays below 2.5 bar for more than thirty seconds; reset it"
    " only after the valve has been closed.",
    "部署前请确认 `kubectl get nodes` 中所有节点均为 Ready，然后执行 rollout restart。",
    "| 型号 | 功率 | 重量 |\n|---|---|---|\n| A-100 | 1.5 kW | 23 kg |\n| A-200 | 2.2 kW | 31 kg |",
    "def retry(attempts: int) -> None:\n    for attempt in range(attempts):\n        connect()",
    "一九三七年七月，考古队在河谷北岸发现了一处新石器时代的聚落遗址，出土陶器三百余件。" * 8,
)


def least_cosine(one: Encoder, other: Encoder) -> float:
    """The smallest cosine between both encoders' vectors of the same sample."""
    return float(np.min(np.sum(one.embed(SAMPLES).vectors * other.embed(SAMPLES).vectors, axis=1)))
