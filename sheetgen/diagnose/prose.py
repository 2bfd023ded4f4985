"""Tells words of a failure that a program printed from those quoted in a sentence, a heading, a list or a table.

A text about errors (documentation, release notes, a question) contains the words of a log. Signs of it are sentences
before the words on their line, quotation marks, and Markdown; a line without other text is judged by the rest of the
file: mostly sentences, or mostly lines of a program.
"""

from __future__ import annotations

import re

_FUNCTION_WORD = re.compile(
    r"(?i)\b(?:an?|and|are|as|at|be|because|been|but|by|can|could|did|does?|do|for|from|had|has|have|he|how|i|if|in|is|"
    r"it|its|may|me|my|nobody|not?|of|on|or|our|out|she|should|so|some|than|that|the|their|them|then|there|these|they|"
    r"this|those|to|us|was|we|were|what|when|where|which|while|who|why|will|with|would|your?)\b"
)
# The beginning of a line of a program: a time, a level, a rank, a name in its code, a frame, a record.
_PRINTED = re.compile(
    r"\s*(?:[>▎│|] ?)*(?:\d{4}[-/]\d\d|\d{1,2}[:.]\d\d|[A-Z]\d{4}\b|time=|\[[^\]]{0,30}\d|"
    r"\[(?:[A-Z_-]+|TensorRT-LLM)\]|\[\w+ pid=|\(\w+(?: rank=\d+)? pid=|File \"|Traceback|\{\"|"
    r"(?:INFO|DEBUG|WARN|WARNING|ERROR|CRITICAL|FATAL|TRACE)\b|[\w./-]*[_.\[][\w./\]-]*:|"
    r"(?:kernel|srv|slot|main|systemd|error)\b.{0,30}:|\w[\w.-]{0,40} +\| |\d+\.\d+\.\d+ [A-Z] |.{0,60}\d\d:\d\d:\d\d)"
)
# An error without such a beginning: its class, or the words of a runtime.
_STATED = re.compile(r"\s*(?:[>▎│|] ?)*(?:[\w.]+(?:Error|Exception|Exit|Killed)\b|Exception\b|CUDA |HIP )")
_TAG = re.compile(r"\[(?:[A-Z]{1,10}|TensorRT-LLM|TRT-LLM)\]|\b\w+_\w+: ")
_MARKDOWN = re.compile(r"\s{0,3}(?:#{1,6} |[-*•] +\S|\d{1,2}[.)] +\S|\*\*|\| )")
_HEADING = re.compile(r"\s{0,3}#{1,6} ")
_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
_QUOTES = re.compile(r"(?:^|(?<=[\s(]))(?:`([^`]+)`|\"([^\"]+)\"|“([^”]+)”|\*\*([^*]+)\*\*)")
_QUESTION = re.compile(r"\?[\s\"'”»)]*$")
_SUBJECT = re.compile(r"(?i)\s*(?:[>│|] ?)*(?:subject|betreff|objet|title|titel|re|aw|fwd?): ")
# Source code: the location that a search prints before a line, and the statements that contain messages.
_FOUND_IN = re.compile(
    r"[\w./~-]+\.(?:py|pyx|c|cc|cpp|cu|cuh|h|hpp|rs|go|js|ts|java|sh)[:-](?:\d+[:-])?(?!\s*\w*Warning:)"
)
_CODE = re.compile(
    r"[+-]?\s*(?:(?:raise|throw(?: new)?) [\w.:]+\(|"
    r"(?:return|assert|if|elif|while|case|except|catch|yield)\b[^\"'`]*[\"'`]|"
    r"(?:\w+\.)*(?:log|logger|logging|warnings?|_logger|console|sys\.stderr|self)\.\w+\(|"
    r"(?:print|printf|fprintf|println!?|eprintln!|panic!|TORCH_CHECK\w*|LOG|GGML_LOG_\w+|GGML_ABORT)\s*\(|"
    r"re\.\w+\(|(?:\w+[ *&]+){0,4}[\w.\[\]]+(?:: [\w.\[\], ]+)? [+|]?= [\w.]*\(?[frbu]{0,2}[\"'`]|"
    r"[frbu]{0,2}[\"'].*[\"'][,)\s]*[,)]$|//|/\*|\"\"\"|\*\s+@)"
)
_PART_OF_A_TEXT = re.compile(r"[frbu]{0,2}([\"']).*\s\1$")  # a string literal that goes on in the next line
_COMMAND = re.compile(
    r"(?:\S+@\S+[:~]\S* ?)?[+$#%>❯]* ?(?:sudo )?(?:[\w ./-]+ \| *)?"
    r"(?:[ezf]?grep|rg|ag|ack|awk|sed|find|git (?:grep|log)|echo|printf|watch)\s"
)
# The least number of words:
_SENTENCE = 6  # of a sentence before the words of a failure
_LIST = 4  # of a list's entry, or before the words of a failure if a sentence follows them
_AROUND_QUOTES = 3
_MOST = 2000  # characters of a line that are read


def _is_sentence(text: str, least: int, function_words: int = 2) -> bool:
    return len(_WORD.findall(text)) >= least and len(_FUNCTION_WORD.findall(text)) >= function_words


def is_printed(line: str) -> bool:
    """True if a line begins as those of programs do."""
    return _PRINTED.match(line) is not None


def is_source(line: str, begin: int) -> bool:
    """True if the words at `begin` of a line are in source code, or in a command that searches for them."""
    text = line[: begin + _MOST].strip()
    if _COMMAND.match(line[:begin].lstrip()):
        return True
    found_in = _FOUND_IN.match(text)
    if not found_in and is_printed(line):
        return False
    code = text[found_in.end() :].strip() if found_in else text
    return bool(_CODE.match(code) or _PART_OF_A_TEXT.match(code))


def is_quoted(line: str, begin: int, end: int) -> bool:
    """True if the words from `begin` to `end` of a line are part of a text that a person wrote."""
    if _SUBJECT.match(line):
        return True
    if is_printed(line) or _STATED.match(line) or _TAG.search(line, 0, begin):
        return False
    before, after = line[max(0, begin - _MOST) : begin], line[end : end + _MOST]
    if _HEADING.match(line) or _is_sentence(before, _SENTENCE):
        return True
    if _QUESTION.search(line) and _is_sentence(f"{before} {after}", _AROUND_QUOTES, 1):
        return True
    if _is_sentence(before, _LIST) and _is_sentence(after, _SENTENCE):
        return True
    if _MARKDOWN.match(line) and _is_sentence(f"{before} {after}", _LIST, 1):
        return True
    return any(
        quote.start() <= begin < quote.end() and len(_WORD.findall(_QUOTES.sub(" ", line[:_MOST]))) >= _AROUND_QUOTES
        for quote in _QUOTES.finditer(line[: begin + _MOST])
    )


def is_text(data: str) -> bool:
    """True if a file has more sentences than lines of a program."""
    n_sentences = n_printed = 0
    for line in data.splitlines():
        if is_printed(line):
            n_printed += 1
        elif _HEADING.match(line):
            n_sentences += 2
        elif not _STATED.match(line) and _is_sentence(line[:_MOST], _SENTENCE):
            n_sentences += 1
    return n_sentences >= 2 and n_sentences > n_printed
