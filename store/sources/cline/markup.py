"""Calls, results and a person's words that stand as marked up text in a model's messages.

Source: the Cline format page, section 3.3. Most models write their calls as XML; results come as
text with a heading, in the order of the calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from store.sources.base.content_blocks import blocks_of
from store.sources.base.json_values import LineError, parse_json
from store.sources.base.values import mapping, string

ANSWERS = frozenset({"attempt_completion", "plan_mode_respond"})
"""Tools that end a turn with an answer."""
_TOOLS = (
    "read_file", "write_to_file", "replace_in_file", "apply_diff", "apply_patch", "edit_file",
    "insert_content", "search_and_replace", "search_replace", "search_files", "list_files",
    "list_code_definition_names", "codebase_search", "execute_command", "browser_action",
    "use_mcp_tool", "access_mcp_resource", "load_mcp_documentation", "ask_followup_question",
    "attempt_completion", "plan_mode_respond", "act_mode_respond", "new_task", "switch_mode",
    "fetch_instructions", "update_todo_list", "run_slash_command", "generate_image", "condense",
    "summarize_task", "report_bug", "new_rule", "web_fetch", "web_search", "use_skill",
    "use_subagents", "generate_explanation", "delete_file", "skill",
)  # fmt: skip
_CALL = re.compile(rf"<({'|'.join(_TOOLS)})>(.*?)(?:</\1>|\Z)", re.S)
_PARAMETER = re.compile(r"<([a-z_]+)>")
_LONG = frozenset({"content", "diff", "result", "response", "args", "arguments"})
"""Parameters whose text may hold tags: they end at the last closing one."""
_HEADING = re.compile(r"\[([a-z_]+)(?: for .*?)?\] Result:(?:\n|\Z)", re.S)
_SAID = re.compile(r"<(task|feedback|user_message|answer)>")
_QUESTION = "ask_followup_question"
_DENIED = "The user denied this operation"
_FAILED = "The tool execution failed with the following error"
_EXIT = re.compile(r"Command failed with exit code \d|Exit code: (?!0\b)\d")
_INTERRUPTED = "[Response interrupted by user]"


def calls_in(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the calls in a model's text: the tool's name, and its parameters."""
    for found in _CALL.finditer(text):
        yield found[1], _parameters(found[2])


def _parameters(body: str) -> dict[str, str]:
    given: dict[str, str] = {}
    at = 0
    while begin := _PARAMETER.search(body, at):
        name, closing = begin[1], f"</{begin[1]}>"
        find = body.rfind if name in _LONG else body.find
        end = find(closing, begin.end())
        if end < 0:
            end = len(body)
        given[name] = body[begin.end() : end].strip("\n")
        at = end + len(closing)
    return given


def words_in(text: str) -> str:
    """Return what a model said in a text, without its calls."""
    return _CALL.sub("", text).replace(_INTERRUPTED, "").strip()


def feedback_in(text: str) -> list[str]:
    """Return what a person said in a text that the program put together."""
    if text.startswith("<environment_details>"):
        return []
    said: list[str] = []
    at = 0
    while begin := _SAID.search(text, at):
        end = text.find(f"</{begin[1]}>", begin.end())
        if end < 0:
            break
        said.append(text[begin.end() : end].strip("\n"))
        at = end
    return said


def results_in(
    blocks: list[dict[str, Any]],
) -> Iterator[tuple[str | None, str | None, str, str]]:
    """Yield the results in a message: the call's id or the tool's name, the words, the outcome."""
    heading: tuple[str, str] | None = None
    for block in blocks:
        if block.get("type") == "tool_result":
            words = _unwrapped(_text_of(block.get("content")))
            call_id = string(block.get("tool_use_id")) or ""
            status = _outcome(words)
            failed = block.get("is_error") is True and status == "ok"
            yield call_id, None, words, "error" if failed else status
            continue
        text = block.get("text") if block.get("type") == "text" else None
        if not isinstance(text, str):
            continue
        found = _HEADING.match(text)
        if heading is not None:
            # The words of a result may come in a block after its heading.
            alone = found is not None or text.startswith(("<environment_details>", "<feedback>"))
            words = "" if alone else text
            yield None, heading[0], words, _outcome(words)
            heading = None
            if not alone:
                continue
        if found is not None:
            words = text[found.end() :]
            if words.strip():
                if found[1] == _QUESTION:
                    words = "\n".join(feedback_in(words)) or words
                yield None, found[1], words, _outcome(words)
            else:
                heading = found[1], text
    if heading is not None:
        yield None, heading[0], "", "ok"


def _text_of(content: object) -> str:
    texts = (block.get("text") for block in blocks_of(content))
    return "\n".join(text for text in texts if isinstance(text, str))


def _unwrapped(words: str) -> str:
    """Return a result that newer versions of Roo write as JSON in the words of older ones."""
    if not words.startswith('{"status"'):
        return words
    try:
        told = mapping(parse_json(words.encode("utf-8", "replace"), may_be_wrapped=False)[0])
    except LineError:
        return words
    message, error = string(told.get("message")), string(told.get("error"))
    if message is None or told.get("status") not in ("denied", "approved", "error"):
        return words
    feedback = string(told.get("feedback"))
    if feedback is not None:
        return f"{message}:\n<feedback>\n{feedback}\n</feedback>"
    return f"{_FAILED}:\n{error}" if error is not None else message


def _outcome(words: str) -> str:
    """Return how a call ended, by the words that its result begins with."""
    if words.startswith(_DENIED):
        return "denied"
    if words.startswith(_FAILED):
        return "error"
    head = words.partition("\nOutput:")[0]
    is_command = head.startswith("Command ")
    return "error" if is_command and _EXIT.search(head) else "ok"
