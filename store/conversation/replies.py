"""Extracts a person's reply to a tool call from the fixed text around it.

An agent passes a refusal, an approval or an answer to the model as the call's result: a few
fixed sentences with the person's words among them. The result begins with such a sentence; the
same words further on in an output are the output's.
Sources: results that Claude Code (1.0 to 2.1.332), opencode, Cline, Amp and mini-swe-agent wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from store.conversation.readable import decode, readable
from store.text.stored_json import as_dict

_REFUSED = re.compile(
    r"\s*(?:Error: )?(?:"
    r"The user (?:doesn't|does not|has )?\s*(?:want|rejected|denied|declined|cancelled)\b"
    r"|Permission for this (?:tool use|action)\b"
    r"|The agent proposed a plan\b"
    r"|(?:The|This) tool (?:call|use) (?:was|is) rejected\b"
    r"|Commands? not executed\. The user rejected\b"
    r"|User (?:has )?(?:rejected|denied|declined)\b"
    r")"
)
_APPROVED = re.compile(r"\s*(?:The user|User) (?:has )?approved\b")
_SAID = re.compile(
    r"\bthe user (?:also )?(?:said|wrote|replied):[ \t]*\r?\n?"
    r"|\b(?:provided|responded with|rejected your commands with) the (?:following )?"
    r"(?:reason for the rejection|feedback|message|context):[ \t]*\r?\n?"
    r"|\bspecific tool call with the following feedback:[ \t]*\r?\n?"
    r"|\brejected by the user with feedback:[ \t]*\r?\n?",
    re.IGNORECASE,
)
_LONGEST_OPENING = 1_000
"""Characters of fixed text before a person's words."""
_NOTE = re.compile(
    r"\n\s*\n(?:Note: The user's next message\b|<system-reminder>|## Approved Plan\b)"
)
_TAGGED = re.compile(r"<(feedback|user_message)>\s*(.*?)\s*</\1>\s*(.*)\Z", re.S)
_PLAN = re.compile(r"^## Approved Plan[^\n]*:[ \t]*\r?\n", re.M)
_EDITED = "(edited by user)"
_ASKED = re.compile(
    r"The user (?:wants to clarify these questions|has indicated they have provided enough)\b"
    r".*?\bQuestions asked(?: and answers provided)?:\s*",
    re.S,
)
_ASKED_ITEM = re.compile(
    r"^- \"(?P<question>.*?)\"\n[ \t]*(?:Answer: (?P<answer>.*?)|\(No answer provided\))"
    r"(?:\n[ \t]*User notes: (?P<note>.*?))?(?=\n- \"|\Z)",
    re.S | re.M,
)
_ANSWERED = re.compile(
    r"\s*(?:User has answered your questions?|The user (?:has )?answered(?: your questions?)?"
    r"|Your questions have been answered):\s*"
)
_ANSWERED_END = re.compile(
    r"\.?\s+(?:You can now continue with|Read the answers carefully)\b[^\"]*\Z"
)
_NOTES = re.compile(r" (?:user )?notes: ")
_PREVIEW = re.compile(r" selected preview:\s.*?(?= (?:user )?notes: |\Z)", re.S)
_CODEX_NOTE = "user_note: "
_ANSWER_ALONE = re.compile(r"\s*<(answer|user_message|feedback)>\s*(.*?)\s*</\1>\s*", re.S)
_UNANSWERED = ("(no option selected)", "Unanswered")


class Reply(NamedTuple):
    """A tool result divided into reply and fixed text.

    Attributes:
        words: The person's words; empty if there are none.
        rest: The fixed text around them.
    """

    words: str
    rest: str


def reply_in(result: str, *, succeeded: bool = False) -> Reply:
    """Return the person's words in a call's result, and the rest of it.

    Args:
        result: The result's text.
        succeeded: Whether the call went well: then only an approval holds words.
    """
    opened = (_APPROVED if succeeded else _REFUSED).match(result)
    opened = opened or _APPROVED.match(result)
    found = opened and _SAID.search(result, 0, opened.end() + _LONGEST_OPENING)
    if not found:
        return Reply("", result)
    words, after = result[found.end() :], ""
    note = _NOTE.search(words)
    if note is not None:
        words, after = words[: note.start()], words[note.start() :].strip()
    tagged = _TAGGED.match(words.lstrip())
    if tagged is not None:
        words, after = tagged[2], "\n".join(filter(None, (tagged[3], after)))
    rest = result[: found.end()].strip()
    if asked := _ASKED.match(words.lstrip()):
        # The agent's own sentences: only answers and notes among them are the person's.
        rest = f"{rest}\n{words.strip()}"
        words = _said_of_questions(words.lstrip()[asked.end() :])
    rest = f"{rest}\n{after}" if after else rest
    return Reply(words.strip(), rest) if words.strip() else Reply("", result)


def _said_of_questions(text: str) -> str:
    answers = [
        Answer(item["question"], item["answer"] or "", item["note"] or "")
        for item in _ASKED_ITEM.finditer(text)
    ]
    return "\n".join(answer.text for answer in answers if answer.words or answer.note)


class Answer(NamedTuple):
    """A person's answer to one question.

    Attributes:
        words: The choice, or words of their own; empty if there are none.
        note: What they wrote beside it.
    """

    question: str
    words: str
    note: str = ""

    @property
    def text(self) -> str:
        """The answer behind its question, the note on a line of its own."""
        line = f"{self.question}  {self.words}".rstrip()
        return f"{line}\n  {self.note}" if self.note else line


def answers_in(
    result: str, structured: Mapping[str, Any], questions: Sequence[Mapping[str, Any]]
) -> list[Answer]:
    """Return what a person answered to an agent's questions, in the order of the questions.

    Args:
        result: The result's text.
        structured: The agent's structured data of the result.
        questions: What was asked: ``question``, and ``id`` in some agents.
    """
    asked = [str(question.get("question") or "") for question in questions]
    ids = {str(item.get("id")): text for item, text in zip(questions, asked, strict=True) if text}
    told = structured if "answers" in structured else as_dict(decode(result))
    answers, notes = told.get("answers"), as_dict(told.get("annotations"))
    if not answers and not notes:
        return list(_written_answers(result, asked)) or _plain_answer(result, asked)
    if isinstance(answers, list):
        answers = dict(zip(asked or map(str, range(len(answers))), answers, strict=False))
    answers = as_dict(answers)
    names = [*answers, *(name for name in notes if name not in answers)]
    names.sort(key=lambda name: asked.index(name) if name in asked else len(asked))
    found = []
    for name in names:
        words, note = _chosen(answers.get(name))
        note = _note(notes.get(name)) or note
        if words or note:
            found.append(Answer(_question_of(name, asked, ids), words, note))
    return found


def _plain_answer(result: str, asked: Sequence[str]) -> list[Answer]:
    """Return the answer to one question in a result that is tagged as one."""
    words = untagged(result)
    return [Answer("".join(asked[:1]), words)] if words and words != result.strip() else []


def untagged(result: str) -> str:
    """Return the answer that a result consists of, without the tag around it."""
    found = _ANSWER_ALONE.fullmatch(result)
    return found[2] if found else result.strip()


def _question_of(name: str, asked: Sequence[str], ids: Mapping[str, str]) -> str:
    """Return a question by the name that an answer has: its text, its id or its number."""
    if name in asked:
        return name
    if name in ids:
        return ids[name]
    if name.isdecimal() and len(name) < 4 and int(name) < len(asked):
        return asked[int(name)]
    return name


def _chosen(value: Any) -> tuple[str, str]:
    """Return what was chosen, and a note that is among the choices, as Codex has it."""
    value = as_dict(value).get("answers", value)
    if not isinstance(value, list):
        return readable(value), ""
    said = list(map(readable, value))
    notes = [one.removeprefix(_CODEX_NOTE) for one in said if one.startswith(_CODEX_NOTE)]
    return ", ".join(one for one in said if not one.startswith(_CODEX_NOTE)), "\n".join(notes)


def _note(annotation: Any) -> str:
    note = annotation if isinstance(annotation, str) else as_dict(annotation).get("notes")
    return note.strip() if isinstance(note, str) else ""


def _written_answers(result: str, asked: Sequence[str]) -> Iterator[Answer]:
    """Yield the answers in a result of the form ``"question"="answer" user notes: …, …``."""
    opened = _ANSWERED.match(result)
    if opened is None:
        return
    text = _ANSWERED_END.sub("", result[opened.end() :])
    places = []
    at = 0
    for question in asked:
        mark = f'"{question}"='
        place = text.find(mark, at)
        if place >= 0:
            at = place + len(mark)
            places.append((question, place, at))
    ends = [place for _question, place, _start in places[1:]] + [len(text)]
    for (question, _place, start), end in zip(places, ends, strict=True):
        said = _PREVIEW.sub("", text[start:end].strip().removesuffix(","))
        words, *notes = _NOTES.split(said, maxsplit=1)
        words = words.strip().removesuffix(".")
        if words.startswith('"') and words.endswith('"') and len(words) > 1:
            words = words[1:-1]
        words = "" if words in _UNANSWERED else words
        if words or notes:
            yield Answer(question, words, *notes)


class ApprovedPlan(NamedTuple):
    """A plan that a person approved.

    Attributes:
        edited: Whether the person changed it first.
        rest: The fixed text of the result.
    """

    plan: str
    edited: bool
    rest: str


def approved_plan(result: str, structured: Mapping[str, Any]) -> ApprovedPlan | None:
    """Return the approved plan in the result of a plan tool, or None.

    Args:
        result: The result's text.
        structured: The agent's structured data of the result.
    """
    heading = _PLAN.search(result)
    given = structured.get("plan")
    plan = given if isinstance(given, str) and given.strip() else None
    if heading is None and plan is None:
        return None
    edited = structured.get("planWasEdited") is True
    rest = result
    if heading is not None:
        plan = result[heading.end() :].strip()
        edited = edited or _EDITED in heading[0]
        rest = result[: heading.start()].strip()
    return ApprovedPlan(plan or "", edited, rest)
