"""MGSM: 250 problems of GSM8K in eleven languages, asked and answered in the language (zero-shot).

Shi, Suzgun, Freitag, Wang, Srivats, Vosoughi, Chung, Tay, Ruder, Zhou, Das and Wei (2022), "Language Models are
Multilingual Chain-of-Thought Reasoners", https://arxiv.org/abs/2210.03057

`params: {language: de}` or `{language: [de, en]}` asks in some of the languages only.
"""
# ruff: noqa: RUF001 - the letters of other scripts are meant

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nemo_evaluator.environments import ScorerInput, benchmark, scorer
from nemo_evaluator.environments.hub import HubDataset
from nemo_evaluator.environments.rows import Joined, Row, reads
from nemo_evaluator.errors import UsageError
from nemo_evaluator.scoring.numeric import score_number
from nemo_evaluator.types import SeedResult


@dataclass(frozen=True, slots=True)
class Language:
    """How to ask in a language, and how its speakers write numbers."""

    instruction: str
    cue: str
    dot_groups: bool = False
    """1.234 is one thousand two hundred and thirty-four."""


LANGUAGES = {
    "bn": Language('সমস্যাটি ধাপে ধাপে সমাধান করো। শেষ লাইনে "উত্তর: <সংখ্যা>" আকারে উত্তরটি লেখো।', "উত্তর"),
    "de": Language(
        'Löse die Aufgabe Schritt für Schritt. Schreibe in die letzte Zeile "Antwort: <Zahl>".', "Antwort", True
    ),
    "en": Language('Solve the problem step by step. Write "Answer: <number>" on the last line.', "Answer"),
    "es": Language(
        'Resuelve el problema paso a paso. Escribe "Respuesta: <número>" en la última línea.', "Respuesta", True
    ),
    "fr": Language(
        "Résous le problème étape par étape. Écris « Réponse : <nombre> » sur la dernière ligne.", "Réponse", True
    ),
    "ja": Language("問題を順を追って解いてください。最後の行に「答え: <数>」と書いてください。", "答え"),
    "ru": Language("Реши задачу шаг за шагом. В последней строке напиши «Ответ: <число>».", "Ответ", True),
    "sw": Language('Tatua tatizo hili hatua kwa hatua. Kwenye mstari wa mwisho andika "Jibu: <namba>".', "Jibu"),
    "te": Language('సమస్యను దశలవారీగా పరిష్కరించండి. చివరి పంక్తిలో "సమాధానం: <సంఖ్య>" అని రాయండి.', "సమాధానం"),
    "th": Language('แก้โจทย์ปัญหาทีละขั้นตอน แล้วเขียน "คำตอบ: <ตัวเลข>" ในบรรทัดสุดท้าย', "คำตอบ"),
    "zh": Language("请逐步解题，并在最后一行写“答案: <数字>”。", "答案"),
}
PROMPT = "{instruction}\n\n{question}"


@reads("hf://juletxara/mgsm?config=LANGUAGE&split=test")
def problems(language: str | Sequence[str], revision: str | None) -> Joined:
    """The languages one after the other, all from one commit."""
    dataset = HubDataset("juletxara/mgsm", split="test", revision=revision).pinned()
    return Joined([(replace(dataset, config=code).load(), {"category": code}) for code in _codes(language)])


def ask_in_language(row: Row, idx: int, rng: random.Random) -> Row:
    return {
        "instruction": LANGUAGES[row["category"]].instruction,
        "question": row["question"].strip(),
        "category": row["category"],
        "target": str(int(row["answer_number"])),
    }


def gold(seed: SeedResult) -> str:
    return f"{LANGUAGES[seed.metadata['category']].cue}: {seed.expected_answer}"


@benchmark(
    "mgsm",
    dataset=problems,
    prompt=PROMPT,
    prepare_row=ask_in_language,
    metadata=("category",),
    gold=gold,
    language="all",
    revision=None,
)
@scorer
def mgsm(sample: ScorerInput) -> dict[str, object]:
    language = LANGUAGES[sample.metadata["category"]]
    return score_number(sample.response, sample.target, dot_groups=language.dot_groups)


def _codes(language: str | Sequence[str]) -> list[str]:
    if language == "all":
        return list(LANGUAGES)
    codes = language.split(",") if isinstance(language, str) else list(language)
    unknown = [code for code in codes if code not in LANGUAGES]
    if unknown or not codes:
        named = ", ".join(map(repr, unknown)) or "at all"
        raise UsageError(f"mgsm has no language {named}. Accepted: all, {', '.join(LANGUAGES)}.")
    return codes
