"""How keys, tokens, private keys and passwords are recognised: the rules, as data.

A rule has words that its secrets begin with or stand beside (``ghp_``, ``password``), and a
pattern that is tried only where one of the words was found. No rule goes by entropy alone: hashes,
ids and prose stay readable.

The prefixes and lengths are those that the services give their keys. A password or key without
a prefix is recognised by what it is assigned to, in code, environment files, command lines,
headers, URLs and connection strings, where its value is not a variable, a call or a placeholder.
"""

from __future__ import annotations

import re
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple


class Secret(NamedTuple):
    """A secret in a text.

    Attributes:
        kind: What it is, for people.
        start: Offset of its first character.
        end: Offset after its last character.
    """

    kind: str
    start: int
    end: int


_LONGEST_BEFORE = 60
_LONGEST_REFUSED = 400
"""Characters of what is no secret in which no other one of the same kind is looked for."""


def _group(match: re.Match[str]) -> str | int:
    return "secret" if "secret" in match.re.groupindex else 0


_PLACEHOLDER = re.compile(
    r"[*x•.#_-]+|X+|<.*|\$.*|%.*%?|\{.*|\[.*|#/.*"
    r"|(?:your|my|an?|the|some|insert|replace|enter|put|add|paste|use|set|change|generate)[-_ ].*"
    r"|(?:changeme|example|placeholder|redacted|secret|password|passwd|pass|token|string|none|null"
    r"|nil|true|false|undefined|required|optional|str|bytes|test|dummy|fake|todo|hidden|masked"
    r"|changeit|default|value|key)[\d!]{0,3}"
    r"|[a-z_. -]*(?:pass(?:word|wd)|secret|token|api[-_]?key)[a-z_. -]*",
    re.IGNORECASE | re.DOTALL,
)
_FILLED_IN = re.compile(
    # The tokens of X begin with 22 letters A.
    r"(?!A{20,24}[B-Z%a-z0-9][A-Za-z0-9%]{50})(?<!A(?=A))(.)\1{7,}|(?:example|xxxx|your[-_]?|\*\*\*|\.\.\.|<|\$\{|0123456789|redacted|placeholder"
    r"|change[-_]?me|abcdefghij)", re.IGNORECASE)
_KNOWN_EXAMPLES = re.compile(
    # Keys that the documentation of their services shows.
    r"4eC39HqLyjWDarjtT1zdp7dc|BQokikJOvBiI2HlWgH4olfQ2|16C7e42F292c6912E7710c838347Ae178B4a"
    r"|eyJzdWIiOiIxMjM0NTY3ODkwI|wJalrXUtnFEMI|je7MtGbClwBF|c3VwYWJhc2UtZGVtby")


def _is_filled_in(match: re.Match[str]) -> bool:
    return not _is_placeholder(match[_group(match)])


def _is_placeholder(value: str) -> bool:
    """Return whether a value only shows where a secret goes."""
    return bool(
        _PLACEHOLDER.fullmatch(value) or _FILLED_IN.search(value[:200])
        or _KNOWN_EXAMPLES.search(value[:400]))


@dataclass(frozen=True, slots=True)
class Rule:
    """How one kind of secret is recognised.

    Attributes:
        kind: What it is, for people.
        words: One of these is in the text where there is such a secret; ASCII, and in lower
            case where ``folded``.
        pattern: Matched from a word on. The group ``secret`` is masked; without one, the whole
            match is.
        folded: Whether the words may be in upper case, too.
        before: Characters that the match may have before the word; it begins with the first of
            them, at most 60 characters before the word.
        after_letters: Whether the match may follow a letter or digit.
        accepts: Returns whether a match is a secret and no placeholder.
    """

    kind: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    folded: bool = False
    before: frozenset[str] = frozenset()
    after_letters: bool = False
    accepts: Callable[[re.Match[str]], bool] = _is_filled_in

    def secrets(self, text: str, places: Sequence[int]) -> Iterator[Secret]:
        """Yield the secrets of this kind in a text.

        Args:
            text: The text.
            places: Where in it the words of the rule are, in order.
        """
        done = 0
        for at in places:
            start = self._start(text, at, done)
            if at < done or not (self.after_letters or _is_apart(text, start)):
                continue
            match = self.pattern.match(text, start)
            if match is None:
                continue
            begin, end = match.span(_group(match))
            if self.accepts(match):
                done = end
                yield Secret(self.kind, begin, done)
            elif end - begin > _LONGEST_REFUSED:
                done = end

    def _start(self, text: str, at: int, done: int) -> int:
        """Return where a match has to begin whose word is at an offset."""
        start, first = at, max(done, at - _LONGEST_BEFORE)
        while start > first and text[start - 1] in self.before:
            start -= 1
        return start


def _is_apart(text: str, at: int) -> bool:
    """Return whether no word of ASCII letters and digits goes on at an offset."""
    before = text[at - 1 : at]
    return not (before.isascii() and (before.isalnum() or before == "_"))


def _token(kind: str, tail: str, *words: str) -> Rule:
    """Declare the keys that begin with one of some words.

    Args:
        kind: What they are.
        tail: Pattern of what follows the word.
        words: What they begin with.
    """
    starts = "|".join(map(re.escape, words))
    return Rule(kind, words, re.compile(rf"(?:{starts}){tail}(?![A-Za-z0-9])"))


_NAMED = (
    # Matched from one of ``_WORDS`` on: what the name of a password or key ends with.
    r"(?:(?:pass(?:word|wd|[ _-]?phrase|code|wort)|(?<![a-z])pass|pwd|(?<![a-z])pw"
    r"|secret(?:[-_.]?(?:access)?[-_.]?key(?:[-_.]?base)?)?|credentials?|creds|token"
    r"|requirepass|masterauth|bindpw)"
    r"|(?:" + "|".join(
        f"(?<={name})|(?<={name}[-_. ])" for name in (
            "api", "auth", "openai", "subscription", "app", "admin", "functions", "access",
            "account", "private", "encryption", "signing", "master", "service", "shared",
            "preshared", "application", "client", "consumer", "license", "deploy", "hmac", "jwt")
    ) + r")key|(?<=client)key-data|(?<=client-)key-data)"
)
_ENDS_NAME = r"(?=[\"'\\\]&\s:=<,])"
_ASSIGNED = re.compile(
    # The end of a name, its closing quote, perhaps a type, a sign of assignment, and a value in
    # quotes (escaped ones, too, as within JSON) or a bare one.
    rf"{_NAMED}{_ENDS_NAME}(?:[\"'\\\]]|&quot;){{0,4}}\s{{0,3}}(?::\s?[&\w.\[\]|]{{2,20}}\s?(?==))?"
    r"(?::=|=>|:|==?)\s{0,3}"
    r"(?P<quote>\\{0,3}[\"'`]|&quot;)?(?P<secret>(?(quote)(?:(?!(?P=quote))(?:\\.|[^\\\n])){4,4000}"
    r"|[^\s\"'`,;(){}<>\[\]\\&]{6,4000}))(?(quote)(?P=quote))",
    re.IGNORECASE,
)
_NAME_BEFORE = re.compile(r"[\w.-]{0,60}\Z")
_ENDING_NAME = re.compile(f"{_NAMED}$", re.IGNORECASE)
_BESIDE = re.compile(
    # A name and a random value with little between them: the end of a command (``set TOKEN x``),
    # another argument, what is taken where a variable is not set, a call around it, a cell of a
    # table, an element, a few words.
    rf"(?:{_NAMED}|(?<![a-z0-9_])(?:pat|(?-i:KEY)))(?![\w-])"
    r"(?:[\s\"'`|*:=,>?<()\[\]\\&]|--?[a-z][a-z-]{0,12}(?=[\s=\"'])|(?:is|was|or|to)\b"
    r"|/?(?:key|string|value|td|th|code|dd|dt)(?=>)"
    r"|-(?=[A-Za-z0-9])|[a-z]\w{0,30}(?:(?:::|\.)\w{1,30}){0,3}(?=\(|\s=\s)|\.\w{1,20}(?=\s)){1,30}?"
    r"(?P<secret>(?<![\w$\\])[A-Za-z0-9_][A-Za-z0-9_+/~-]{19,400}={0,2})(?![\w(.])", re.IGNORECASE)


@lru_cache(maxsize=4096)
def _is_name_of_secret(name: str) -> bool:
    return len(name) <= 80 and bool(_ENDING_NAME.search(name)) and not _PAGES.search(name)


def _name_of(match: re.Match[str]) -> str:
    """Return the whole name whose end a match begins with, up to the secret."""
    start = match.start()
    before = _NAME_BEFORE.search(match.string[max(0, start - 60) : start])
    return (before[0] if before else "") + match.string[start : match.start("secret")]


_REFERENCE = re.compile(
    r"arn:|projects/|https?://|op://|vault:|ref\+|ssm:|file:|env:|secretref:|@Microsoft|ENC\[|!"
    r"|(?:process|os|import\.meta|settings|config|self|this)\.|[/~]$|[~.]{0,2}/[a-z.][\w.-]*/"
    r"|~/|\./|[A-Za-z]:[\\/]|.{1,100}\.(?:pem|key|json|crt|pub|txt|ya?ml|py|ts|js|md|env|toml)$",
    re.IGNORECASE)
"""What only names a secret that is kept elsewhere."""
_CODE = re.compile(r"\|\||&&|\?\.|=>|->|==(?=.)|::|\(\)|\?\w+:|\w\.\w+\.\w+\.\w")
_PAGES = re.compile(r"(?:next|page|continuation|sync|cursor|eos|bos|pad|unk|mask)[-_.]?token",
                    re.IGNORECASE)


def names_secret(name: str, value: str) -> bool:
    """Return whether the value of a member is a secret by the member's name.

    Args:
        name: Such as ``password``.
        value: Its whole text.
    """
    if not 4 <= len(value) <= 4000 or not _is_name_of_secret(name) or _is_placeholder(value):
        return False
    return _may_be_secret(value, name.lower() + ":", quoted=True, ends_line=True)


def _is_assigned_secret(match: re.Match[str]) -> bool:
    """Return whether the value of an assignment looks like a secret, not like code or prose."""
    quoted, value = match["quote"] is not None, match["secret"]
    name = _name_of(match)
    if _is_placeholder(value) or _PAGES.search(name):
        return False
    if name.rstrip("\"'`\\").endswith("=") and name.isupper() and "PASS" in name and (
        len(value) >= 6 and value.isidentifier() and not value.isupper()
    ):
        return True  # A variable of the environment.
    ends_line = match.string[match.end() : match.end() + 1] in ("", "\n", "\r", '"', "\\")
    return _may_be_secret(value, name.lower(), quoted=quoted, ends_line=ends_line)


def _may_be_secret(value: str, name: str, *, quoted: bool, ends_line: bool) -> bool:
    """Return whether an assigned value looks like a secret rather than code or prose.

    Args:
        value: The value.
        name: What it is assigned to, in lower case, with the sign of assignment.
        quoted: Whether it is in quotes.
        ends_line: Whether nothing follows it in its line.
    """
    is_password = "pass" in name or "pwd" in name or "pw" in name
    if " " in value or "\t" in value:
        return False
    if _REFERENCE.match(value) or (not quoted and _CODE.search(value)):
        return False
    digits = any(character.isdigit() for character in value)
    letters = any(character.isalpha() for character in value)
    signs = bool(re.search(r"[^A-Za-z0-9_.:/-]", value))
    if quoted:
        if is_password:
            return digits or signs or not value.isidentifier() or len(value) >= 8
        return len(value) >= 12 and letters and digits
    if re.fullmatch(r"[A-Za-z_]\w*(?:[.:]{1,2}\w+)*", value) and not _is_random(value):
        # A variable or an attribute; a password, where it is written as in a shell or in YAML.
        return is_password and digits and "." not in value and (
            not name[-1].isspace() or (ends_line and not _TEST_PASSED.match(name)))
    if is_password:
        return (digits and letters) or signs
    return len(value) >= 16 and letters and digits


def _is_random(value: str) -> bool:
    """Return whether digits or capitals are too often among the letters for a variable's name."""
    return any(
        len(piece) >= 16 and "_" not in piece and (
            len(re.findall(r"\d+", piece)) >= 2 or _is_mixed(piece))
        for piece in re.split("[.:]", value)
    )


_RUNS = re.compile(r"[A-Z]+|[a-z]+|[0-9]+")


def _is_mixed(value: str) -> bool:
    """Return whether letters of both cases and digits alternate as in no word and no name."""
    runs = _RUNS.findall(value)
    kinds = {"A" if run.isupper() else "a" if run.islower() else "1" for run in runs}
    length = sum(map(len, runs))
    if len(kinds) < 3:
        groups = sum(run.isdigit() for run in runs)
        return groups >= 4 and length < 3.2 * len(runs) and not _HEX_ID.fullmatch(value)
    return length < 2.4 * len(runs)


_HEX_ID = re.compile(r"[0-9a-fA-F-]+|[\d_-]+")


def _is_beside_its_name(match: re.Match[str]) -> bool:
    """Return whether a value near the name of a secret is one: as no word or id looks."""
    value = match["secret"]
    if _INTEGRITY.match(value) or _is_in_mask(match):
        return False
    return _is_mixed(value) and not _is_placeholder(value) and not _PAGES.search(_name_of(match))


_INTEGRITY = re.compile(r"sha(?:1|256|384|512)-[\w+/-]{20,}={0,2}")
"""The checksum of a package in a lock file or of a script in a page."""


def _is_in_mask(match: re.Match[str]) -> bool:
    """Return whether a name is a word of one of our own masks, as in ``[masked Discord token]``."""
    before = match.string[max(0, match.start() - 80) : match.start()]
    return before.rfind("[masked ") > before.rfind("]")


_TEST_PASSED = re.compile(r"pass\W")


def _is_password(match: re.Match[str]) -> bool:
    """Return whether a value is no word of prose or of code."""
    value = match["secret"]
    if _is_placeholder(value) or _REFERENCE.match(value) or _CODE.search(value):
        return False
    return bool(re.search(r"\d", value) and re.search(r"[A-Za-z]", value)
                or re.search(r"[^\w.,:;/'-]", value[:-1]))


def _is_environment_secret(match: re.Match[str]) -> bool:
    """Return whether the value of a line ``NAME=value`` is a secret."""
    value, name = match["secret"], _name_of(match)
    if not name.isupper():
        return False
    if len(value) < 8 or not (re.search(r"\d", value) and re.search(r"[A-Za-z]", value)):
        return False
    name_like = re.fullmatch(r"[A-Za-z_]\w*(?:\.\w+)*", value) and not _is_random(value)
    code = name_like or re.search(r"[),;]$|\w\(|\w=", value)
    return not code and not _REFERENCE.match(value) and not _is_placeholder(value)


def _is_told_password(match: re.Match[str]) -> bool:
    """Return whether what follows "the password is" is one, not a word of prose."""
    value = match["secret"]
    if " " not in match[0].partition(":")[0]:
        return False  # An assignment, which has a rule of its own.
    prose = re.fullmatch(r"[A-Za-z]+\d*(?:-[A-Za-z]+)+\d*[.,:;!?]*|\W*\d+[A-Za-z]{0,3}\W*", value)
    return prose is None and bool(re.search(r"\d", value)) and _is_password(match)


def _is_login(match: re.Match[str]) -> bool:
    """Return whether a value is a name and a password in base64, with a colon between them."""
    login = _unpacked(match["secret"])
    return login is not None and b":" in login and login.isascii() and (
        login.decode("ascii").isprintable())


def _unpacked(value: str) -> bytes | None:
    """Return what a text in base64 holds, in either alphabet; None where it is none."""
    value = value.rstrip("=")
    try:
        decode = urlsafe_b64decode if "-" in value or "_" in value else b64decode
        return decode(value[: len(value) // 4 * 4])
    except ValueError:
        return None


_PACKED_SIGNS = re.compile(
    rb"PRIVATE KEY|\"auth\"\s*:\s*\"|\"(?:private_key|password|identitytoken|client_secret)\"\s*:"
    rb"|(?:api_?key|password|secret|token)\"?\s*[:=]\s*\"?[^\s\"]{8}", re.IGNORECASE)


def _holds_secret(match: re.Match[str]) -> bool:
    """Return whether a text in base64 holds a private key, a login or a password."""
    held = _unpacked(match["secret"])
    return held is not None and bool(_PACKED_SIGNS.search(held))


_HEX = frozenset("0123456789abcdef")
_DIGITS = frozenset("0123456789")
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_NAME_SIGNS = _LETTERS | _DIGITS | frozenset("_.-")
_WORDS = ("pass", "pwd", "pw", "secret", "token", "key", "cred", "masterauth", "bindpw")
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

_TOKENS: tuple[Rule, ...] = (
    # Clouds and hosting
    _token("AWS access key", r"[A-Z2-7]{16}", "AKIA", "ASIA", "ABIA", "ACCA"),
    _token("AWS access key", r"[A-Za-z0-9+/]{60,280}={0,2}", "ABSK", "bedrock-api-key-"),
    _token("Google API key", r"[\w-]{35}", "AIza"),
    _token("Google OAuth token", r"[\w.-]{20,500}", "ya29."),
    _token("Google OAuth token", r"[\w-]{40,200}", "1//0"),
    _token("Google client secret", r"[\w-]{28}", "GOCSPX-"),
    Rule("Azure key", ("Q~",), re.compile(r"[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~-])"),
         before=_LETTERS | _DIGITS | frozenset("_~.-")),
    Rule("Azure key", ("JQQJ9", "AZDO"), re.compile(
        r"(?:[A-Za-z0-9]{52}JQQJ9[A-Za-z0-9]{27}|[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4})(?!\w)"),
        before=_LETTERS | _DIGITS),
    Rule("Azure key", ("AzFu", "+ASt", "AzSe", "AzCa", "+ACR", "+AMC"), re.compile(
        r"[A-Za-z0-9/+]{20,76}(?:AzFu|\+ASt|AzSe|AzCa|\+ACR|\+AMC)[A-Za-z0-9/+]{4,10}={0,2}(?!\w)"),
        before=_LETTERS | _DIGITS | frozenset("/+")),
    _token("Alibaba Cloud key", r"[A-Za-z0-9]{16,24}", "LTAI"),
    _token("Tencent Cloud key", r"[A-Za-z0-9]{32}", "AKID"),
    _token("Yandex Cloud key", r"[\w-]{35,50}", "AQVN", "y0_"),
    Rule("DigitalOcean token", ("_v1_",), re.compile(
        r"do[opr]_v1_[a-f0-9]{64}(?![A-Za-z0-9])"), before=frozenset("dopr")),
    _token("Cloudflare token", r"[A-Za-z0-9]{40,60}", "cfut_", "cfat_", "cfk_"),
    _token("Cloudflare token", r"[a-f0-9]{24}-[a-f0-9]{100,200}", "v1.0-"),
    _token("Heroku key", r"[\w-]{36,80}", "HRKU-"),
    _token("Fly token", r"[\w+/=,-]{60,2000}", "FlyV1 fm2_", "fm2_", "fm1r_", "fm1a_"),
    _token("Fly token", r"[\w-]{43}", "fo1_"),
    _token("Netlify token", r"[A-Za-z0-9_]{36,40}", "nfp_", "nfc_", "nfo_", "nfu_"),
    _token("Vercel token", r"[A-Za-z0-9]{24,64}", "vcp_", "vca_", "vci_", "vck_", "vcr_"),
    Rule("Vercel token", ("vercel_blob_rw_",), re.compile(r"vercel_blob_rw_\w{30,80}")),
    _token("Render key", r"[A-Za-z0-9]{28,40}", "rnd_"),
    _token("Scalingo token", r"[\w-]{48}", "tk-us-"),
    # Code hosting, packages and CI
    _token("GitHub token", r"[A-Za-z0-9]{36,255}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _token("GitHub token", r"\w{60,255}", "github_pat_"),
    _token("GitLab token", r"[\w.-]{20,300}", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-",
           "glsoat-", "glft-", "glimt-", "glagent-", "glwt-", "gloas-", "glffct-", "glrtr-"),
    _token("GitLab token", r"[\w-]{20}", "GR1348941"),
    _token("Bitbucket token", r"[A-Za-z0-9_=-]{28,200}", "ATBB", "ATCTT3"),
    _token("Bitbucket token", r"[A-Za-z0-9+/]{40,50}", "BBDC-"),
    _token("Atlassian token", r"[\w=-]{60,300}", "ATATT3"),
    _token("Sourcegraph token", r"[\w-]{40,120}", "sgp_", "sgamp_user_", "slk_"),
    _token("npm token", r"[A-Za-z0-9]{36}", "npm_"),
    _token("PyPI token", r"[\w-]{50,300}", "pypi-AgE"),
    _token("crates.io token", r"[A-Za-z0-9]{32}", "cio"),
    _token("RubyGems key", r"[0-9a-f]{48}", "rubygems_"),
    _token("NuGet key", r"[a-z0-9]{43}", "oy2"),
    _token("Clojars token", r"[a-z0-9]{60}", "CLOJARS_"),
    _token("Packagist token", r"[a-f0-9]{60,70}", "packagist_uat_", "packagist_org_"),
    _token("Docker token", r"[\w-]{27,40}", "dckr_pat_", "dckr_oat_"),
    _token("Artifactory key", r"[A-Za-z0-9]{60,90}", "AKCp", "cmVmdGtuOj"),
    _token("CircleCI token", r"[A-Za-z0-9]{22}_[a-f0-9]{40}", "CCIPAT_", "CCIPRJ_"),
    _token("Buildkite token", r"[A-Za-z0-9]{30,60}", "bkua_", "bkct_", "bkaj_", "bkpt_"),
    _token("SonarQube token", r"[a-f0-9]{40}", "squ_", "sqp_", "sqa_"),
    _token("Snyk token", r"[\w.-]{30,300}", "snyk_uat.", "snyk_sat."),
    # Models
    # Anthropic, OpenAI, OpenRouter, DeepSeek and those that took the form over.
    _token("API key", r"(?=[\w-]{0,80}\d)(?=[\w-]{0,80}[A-Za-z0-9]{12})[\w-]{20,300}", "sk-"),
    _token("Hugging Face token", r"[A-Za-z0-9]{30,60}", "hf_", "api_org_"),
    _token("Groq key", r"[A-Za-z0-9]{40,60}", "gsk_"),
    _token("xAI key", r"[A-Za-z0-9]{60,100}", "xai-"),
    _token("Perplexity key", r"[A-Za-z0-9]{40,60}", "pplx-"),
    _token("Replicate token", r"[A-Za-z0-9]{36,40}", "r8_"),
    _token("Cerebras key", r"[a-z0-9]{40,60}", "csk-"),
    _token("NVIDIA key", r"[\w-]{60,80}", "nvapi-"),
    _token("Tavily key", r"[A-Za-z0-9-]{28,60}", "tvly-"),
    _token("Together key", r"[\w-]{40,50}", "tgp_v1_"),
    _token("Fireworks key", r"(?=\w{0,30}\d)[A-Za-z0-9]{22,30}", "fw_"),
    _token("LangSmith key", r"(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}", "lsv2_"),
    _token("ElevenLabs key", r"[a-f0-9]{48}", "sk_"),
    _token("Jina key", r"[\w-]{50,70}", "jina_"),
    _token("Pinecone key", r"\w{50,90}", "pcsk_"),
    _token("Voyage key", r"[\w-]{43}", "pa-", "al-"),
    _token("Firecrawl key", r"[a-f0-9]{32}", "fc-"),
    _token("E2B key", r"[a-f0-9]{40}", "e2b_"),
    _token("Modal token", r"(?=[A-Za-z]{0,21}\d)[A-Za-z0-9]{22}", "ak-", "as-"),
    _token("Brave key", r"[\w-]{26,30}", "BSA"),
    _token("Cursor key", r"[a-f0-9]{64}", "crsr_", "key_"),
    _token("Weights & Biases key", r"\w{40,100}", "wandb_v1_"),
    _token("Kaggle token", r"[a-f0-9]{32}", "KGAT_"),
    # Messages and mail
    _token("Slack token", r"[abcdeprs](?:\.xox[bp])?-[A-Za-z0-9.%/+=-]{10,400}", "xox"),
    _token("Slack token", r"\d-[A-Za-z0-9-]{20,300}", "xapp-"),
    Rule("Slack webhook", ("hooks.slack.com/",), re.compile(
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{20,200})")),
    Rule("Discord webhook", ("/api/webhooks/",), re.compile(
        r"/api/webhooks/\d{15,22}/(?P<secret>[\w-]{50,120})"), after_letters=True),
    Rule("webhook", (
        ".webhook.office.com/", "hooks.zapier.com/", "maker.ifttt.com/", "/bot/v2/hook/",
        "/cgi-bin/webhook/", ".make.com/", "/webhook/incoming/", "hooks.chime.aws/",
        "/hooks/incoming-webhook/", "hc-ping.com/", "outlook.office.com/webhook/",
    ), re.compile(
        r"(?:(?:\.webhook\.office\.com|outlook\.office\.com)/webhook(?:b2)?/|hooks\.zapier\.com/hooks/"
        r"(?:catch|standard)/|maker\.ifttt\.com/trigger/\w{1,80}/(?:json/)?with/key/|/bot/v2/hook/"
        r"|/cgi-bin/webhook/send\?key=|\.make\.com/|/webhook/incoming/|hooks\.chime\.aws/incomingwebhooks/"
        r"|hc-ping\.com/)(?P<secret>[\w@/?=-]{16,300})"), after_letters=True),
    Rule("webhook", ("/hooks/",), re.compile(
        r"/hooks/(?P<secret>[a-z0-9]{26}|[A-Za-z0-9]{17}/\w{43})(?![\w/-])"), after_letters=True),
    Rule("Discord token", ("MT", "MD", "Mz", "Mj", "NT", "ND", "Nj", "Nz", "OD", "OT"),
         re.compile(r"[MNO][A-Za-z\d]{23,27}\.[\w-]{6}\.[\w-]{27,40}(?![\w.-])")),
    Rule("Telegram token", (":AA",), re.compile(r"(?<!\d)\d{8,10}:AA[\w-]{32,36}(?![\w-])"),
         before=_DIGITS, after_letters=True),  # Behind ``bot`` in a URL.
    _token("SendGrid key", r"[\w-]{16,24}\.[\w-]{32,50}", "SG."),
    _token("Mailgun key", r"[0-9a-f]{32}(?:-[0-9a-f]{8}-[0-9a-f]{8})?", "key-"),
    Rule("Mailchimp key", ("-us",), re.compile(r"[0-9a-f]{32}-us\d{1,2}(?!\w)"), before=_HEX),
    _token("Brevo key", r"[a-f0-9]{64}-[A-Za-z0-9]{16}", "xkeysib-", "xsmtpsib-"),
    _token("Resend key", r"(?=\w{0,40}\d)[A-Za-z0-9]{6,12}_[A-Za-z0-9]{18,30}", "re_"),
    _token("Twilio key", r"[0-9a-f]{32}", "SK", "AC"),
    _token("OneSignal key", r"[a-z2-7]{60,120}", "os_v2_app_", "os_v2_org_"),
    # Money and shops
    Rule("Stripe key", ("k_live_", "k_test_", "k_prod_"), re.compile(
        r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,250}(?![A-Za-z0-9])"), before=frozenset("rs")),
    _token("webhook secret", r"[A-Za-z0-9+/=]{24,100}", "whsec_"),
    _token("Shopify token", r"(?:at|ca|pa|ss|tka)_[a-fA-F0-9]{32}", "shp"),
    _token("Square token", r"(?:atp|csp)-[\w-]{22,60}", "sq0"),
    _token("Square token", r"[\w-]{58,64}", "EAAA"),
    _token("Facebook token", r"[A-Za-z0-9]{60,250}", "EAAB", "EAAC", "EAAG"),
    _token("Plaid token", rf"(?:production|sandbox|development)-{_UUID}", "access-"),
    _token("Razorpay key", r"[A-Za-z0-9]{14}", "rzp_live_", "rzp_test_"),
    _token("EasyPost key", r"[a-zA-Z0-9]{54}", "EZAK", "EZTK"),
    _token("Flutterwave key", r"[A-Za-z0-9_-]{24,80}", "FLWSECK"),
    _token("Shippo token", r"[a-f0-9]{40}", "shippo_live_", "shippo_test_"),
    Rule("PayPal token", ("access_token$",), re.compile(
        r"access_token\$(?:production|sandbox)\$\w{16}\$[0-9a-f]{32}")),
    # Work
    _token("Linear key", r"[A-Za-z0-9]{40}", "lin_api_", "lin_oauth_"),
    _token("Notion token", r"[A-Za-z0-9]{40,60}", "ntn_", "secret_"),
    _token("Figma token", r"[\w-]{36,60}", "figd_", "figu_", "figo_"),
    Rule("Airtable token", ("pat",), re.compile(r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}(?!\w)")),
    _token("Asana token", r"\d{15,17}(?:/\d{15,17})?:[a-f0-9]{32}", "1/", "2/"),
    _token("ClickUp token", r"\d{6,10}_[A-Z0-9]{32}", "pk_"),
    _token("Contentful token", r"[\w-]{43}", "CFPAT-"),
    _token("Dropbox token", r"(?:u\.)?[\w-]{60,1500}", "sl."),
    _token("HubSpot token", rf"(?:na|eu)\d-{_UUID}", "pat-"),
    _token("LaunchDarkly key", _UUID, "sdk-", "api-"),
    _token("Mapbox token", r"eyJ[\w-]{40,200}\.[\w-]{20,40}", "sk."),
    _token("Typeform token", r"[\w-]{40,64}", "tfp_"),
    _token("Postman key", r"[a-f0-9]{24}-[a-f0-9]{34}", "PMAK-"),
    _token("ReadMe key", r"[a-z0-9]{70}", "rdme_"),
    _token("PostHog key", r"[A-Za-z0-9]{40,60}", "phx_", "phs_"),
    # Data, infrastructure and watching
    _token("Databricks token", r"[a-f0-9]{32}(?:-\d)?", "dapi"),
    _token("PlanetScale token", r"(?:tkn|pw|oauth)_[\w.=-]{32,64}", "pscale_"),
    _token("Supabase token", r"[A-Za-z0-9_-]{30,60}", "sbp_", "sb_secret_"),
    _token("Neon key", r"[a-z0-9]{40,80}", "napi_"),
    _token("Neon password", r"(?=[A-Za-z]{0,15}\d)[A-Za-z0-9]{12,20}", "npg_"),
    _token("MongoDB Atlas secret", r"\w{40}", "mdb_sa_sk_"),
    _token("Xata key", r"[A-Za-z0-9]{30,60}", "xau_"),
    _token("Vault token", r"[\w-]{24,300}", "hvs.", "hvb.", "hvr."),
    Rule("Terraform token", (".atlasv1.",), re.compile(r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,80}"),
         before=_LETTERS | _DIGITS),
    _token("Pulumi token", r"[a-f0-9]{40}", "pul-"),
    _token("Prefect key", r"[a-zA-Z0-9]{36}", "pnu_"),
    _token("Doppler token",
           r"(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]{1,60}\.)?[A-Za-z0-9]{40,44}", "dp."),
    _token("Infisical token", r"[a-f0-9-]{36}\.[\w.]{30,120}", "st."),
    _token("1Password token", r"eyJ[\w+/=-]{80,4000}", "ops_"),
    _token("1Password key", r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})"
           r"(?:-[A-Z0-9]{5}){3}", "A3-"),
    _token("Sentry token", r"[su]_[\w+/=-]{40,300}", "sntry"),
    _token("New Relic key", r"[A-Z0-9]{27}", "NRAK-"),
    _token("New Relic key", r"[\w-]{19,32}", "NRJS-", "NRII-"),
    _token("Grafana token", r"[\w+/=]{32,300}", "glsa_", "glc_"),
    _token("Dynatrace token", r"\.[A-Z0-9]{24}\.[A-Z0-9]{64}", "dt0c01", "dt0s01", "dt0s16"),
    _token("Honeycomb key", r"[a-z0-9]{58}", "hcaik_", "hcamk_", "hcxik_"),
    _token("Tailscale key", r"[a-z]+-[A-Za-z0-9]{10,20}-[A-Za-z0-9]{20,50}", "tskey-"),
    _token("age key", r"[02-9AC-HJ-NP-Z]{58}", "AGE-SECRET-KEY-1"),
    Rule("age key", ("AGE-PLUGIN-",), re.compile(r"AGE-PLUGIN-[A-Z]+-1[02-9AC-HJ-NP-Z]{58,200}")),
    # Of a header and payload at least: a cut one may still hold names.
    _token("JSON web token", r"[\w-]{10,2000}\.eyJ[\w-]{10,8000}(?:\.[\w-]{0,2000})?", "eyJ"),
    _token("JSON web token", r"[\w-]{10,2000}\.[\w-]{20,2000}\.[\w-]{10,100}\.[\w-]{16,8000}"
           r"\.[\w-]{16,60}", "eyJ"),
)

_OF_KEYS: tuple[Rule, ...] = (
    Rule("private key", ("-----BEGIN ",), re.compile(
        # Up to its end, else as far as its lines go; line ends may be escaped, as in JSON, and
        # lines may have numbers or the signs of a diff.
        r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        r"(?P<secret>(?:(?!-----)[A-Za-z0-9+/=:,.\s\\()|→-]){16,20000})"), after_letters=True),
    Rule("private key", ("PuTTY-User-Key-File-",), re.compile(
        r"PuTTY-User-Key-File-\d(?:(?!PuTTY)[\s\S]){0,4000}?Private-Lines: \d+(?:\s|\\[rn])+"
        r"(?P<secret>[A-Za-z0-9+/=\s\\]{64,8000})")),
    Rule("private key", ("BEGIN PGP PRIVATE", "BEGIN SSH2 ENCRYPTED"), re.compile(
        r"BEGIN (?:PGP|SSH2 ENCRYPTED) PRIVATE KEY[ A-Z]*-{4,5}"
        r"(?P<secret>(?:(?!----)[A-Za-z0-9+/=:,.\s\\()-]){16,20000})")),
    Rule("private key", ('"d"', '"d\\"', "'d'"), re.compile(  # Of a JSON web key.
        r"[\"']d\\?[\"']\s*:\s*\\?[\"'](?P<secret>[\w-]{40,900})\\?[\"']"), after_letters=True),
    Rule("encoded secret", ("eyJ", "ewog", "ewoJ", "LS0tLS1CRUdJTi"), re.compile(
        r"(?P<secret>(?:eyJ|ewo[gJ]|LS0tLS1CRUdJTi)[\w+/-]{24,40000}={0,2})"),
        accepts=_holds_secret),
    Rule("Azure storage key", ("accountkey=", "sharedaccesskey=", "accesskey="), re.compile(
        r"(?:Account|SharedAccess|Access)Key=(?P<secret>[A-Za-z0-9+/]{40,90}={0,2})",
        re.IGNORECASE), folded=True, after_letters=True),
    Rule("signature", ("sig=", "signature=", "credential=akia"), re.compile(
        r"(?:sig|Signature)=(?P<secret>[\w%+/=~-]{32,700})",
        re.IGNORECASE), folded=True, after_letters=True),
    Rule("API key", ("?key=", "&key=", "?auth=", "&auth=", "?code=", "?apikey=", "&apikey=",
                     "&appid=", "?appid="), re.compile(
        r"[?&](?:key|auth|code|apikey|appid)=(?P<secret>(?=[\w%-]*\d)[\w%.~-]{20,400}={0,2})",
        re.IGNORECASE), folded=True, after_letters=True),
)

_OF_LOGINS: tuple[Rule, ...] = (
    Rule("password in a URL", ("://",), re.compile(
        r"[A-Za-z][A-Za-z0-9+._-]{1,30}://[^\s:@/\"'<>\\]{0,200}:"
        r"(?P<secret>[^\s/\"'<>\\]{1,300})@(?=[\w.\[-])"),
        before=_LETTERS | _DIGITS | frozenset("+._-")),
    Rule("password in a URL", ("://",), re.compile(
        # A password with a slash; a token in place of a name.
        r"(?:postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?|amqps?|mssql|oracle|snowflake"
        r"|clickhouse|ldaps?|ftps?|sftp|smtps?|imaps?)(?:\+\w+)?://[^\s:@/\"'<>\\]{0,200}:"
        r"(?P<secret>[^\s\"'<>\\@]{1,300})@(?=[\w.\[-])"),
        before=_LETTERS | _DIGITS | frozenset("+._-")),
    Rule("token in a URL", ("://",), re.compile(
        r"https?://(?P<secret>(?=[\w-]*\d)[\w-]{20,200})@(?=[\w.\[-])"),
        before=frozenset("https")),
    Rule("password in a connection string", ("@tcp(", "@unix("), re.compile(
        r"[\w.-]{1,40}:(?P<secret>[^\s\"'@]{3,100})@(?:tcp|unix)\("),
        before=_LETTERS | _DIGITS | frozenset("_.-:!#$%^*+=~?")),
    Rule("password in a connection string", ("thin:", "oci:", "sqlplus ", "sqlldr ", "impdp ",
                                            "expdp "), re.compile(
        r"(?:thin:|oci:|(?:sqlplus|sqlldr|impdp|expdp)\s+(?:-\w+\s+)*[\"']?)\w{1,40}/"
        r"(?P<secret>[^\s\"'@/]{3,100})@"), folded=True, after_letters=True),
    Rule("credentials in a header", ("basic ", "basic%20"), re.compile(
        r"Basic(?:\s+|%20)(?P<secret>[A-Za-z0-9+/_-]{8,2000}(?:=|%3D){0,2})", re.IGNORECASE),
        folded=True, accepts=_is_login),
    Rule("credentials in a header", ("authorization", "bearer ", "x-api-key"),
         re.compile(
             r"(?:Bearer\s+|Authorization[\"'\\]{0,2}\s*[:=,]\s*[\"'\\]{0,2}"
             r"(?:(?:Bearer|Basic|Digest|Bot|GoogleLogin auth|SSWS|Splunk|OAuth"
             r"|[\w-]{0,20}(?:Token|Key))[\s=]*)?"
             r"|x-api-key[\"'\\]{0,2}\s*[:=,]\s*[\"'\\]{0,2})"
             r"(?P<secret>(?=[^\s\"']*[\d+=])[\w.~+/=:-]{16,4000})", re.IGNORECASE), folded=True),
    Rule("credentials in a header", ("credential=", "response="), re.compile(
        r"(?:Credential=[^\n]{10,200}?Signature=|\bresponse=[\"'\\]{0,2})(?P<secret>[0-9a-f]{32,128})",
        re.IGNORECASE), folded=True),
    Rule("password of a command", ("--password", "--passwd", "--token", "--api-key", "--secret",
                                   "-password", "-token", "--apikey", "--auth-token", "--pass",
                                   "--account-key", "--access-key"),
         re.compile(
             r"--?(?:[a-z]+-){0,3}(?:password|passwd|pass|passphrase|token|api-?key|secret(?:-key)?"
             r"|account-key|access-key)"
             r"(?:=|\s+)\\?[\"']?(?P<secret>(?!id=)[^\s\"'<>$({\[\\-][^\s\"'<>\\]{5,300})",
             re.IGNORECASE), folded=True, after_letters=True,
         accepts=lambda match: _is_filled_in(match) and not _REFERENCE.match(match["secret"])),
    Rule("password of a command", ("curl ", "sshpass ", "wget ", "http "), re.compile(
        r"(?:(?:curl|wget|http)(?=\s)(?:[^\n]|\\\n){0,400}?\s(?:-u\s*|--user[\s=]+"
        r"|--proxy-user[\s=]+|-U\s*|-a\s+)\\?[\"']?[^\s:\"'\\]{1,100}:|sshpass\s+-p\s*\\?[\"']?)"
        r"(?P<secret>[^\s\"'$\\]{3,200})")),
    Rule("password of a command", ("mysql", "mariadb", "redis-cli ", "docker login ", "mongo",
                                   "podman login ", "az login ", "smbclient ", "unzip ", "zip ",
                                   "7z ", "-passin ", "-passout ", "-pass ", "sqlcmd ", "psql "),
         re.compile(
        r"(?:(?:mysql|mariadb)(?:-?(?:dump|admin|import|check|show))?(?=\s)[^\n|;]{0,200}?\s-p\\?[\"']?"
        r"|redis-cli(?=\s)[^\n|;]{0,200}?\s(?:-a|--pass)\s+\\?[\"']?"
        r"|(?:docker|podman|az) login(?=\s)[^\n|;]{0,200}?\s-p\s+\\?[\"']?"
        r"|mongo(?:sh|dump|restore|export|import)?(?=\s)[^\n|;]{0,200}?\s(?:-p\s+|--password\s+)\\?[\"']?"
        r"|smbclient(?=\s)[^\n|;]{0,200}?\s-U\s*\\?[\"']?[\w.\\]{1,60}%"
        r"|(?:un)?zip(?=\s)[^\n|;]{0,200}?\s-P\s*\\?[\"']?|7z(?=\s)[^\n|;]{0,200}?\s-p\\?[\"']?"
        r"|sqlcmd(?=\s)[^\n|;]{0,200}?\s-P\s*\\?[\"']?"
        r"|-pass(?:in|out)?\s+\\?[\"']?pass:)"
        r"(?P<secret>[^\s\"'$<{(\[\\-][^\s\"'<>\\]{3,200})"), after_letters=True),
    Rule("password of a command", ("vault login ", "auth init ", "authtoken ", "--from-literal"),
         re.compile(
        r"(?:vault login|auth init|authtoken|--from-literal)(?:[\s=]+-\w+)*[\s=]+(?:[\w.-]{1,60}=)?"
        r"[\"']?(?P<secret>[\w.-]{16,300})"), after_letters=True,
        accepts=lambda match: _is_filled_in(match) and _is_random(match["secret"])),
    Rule("password of a login", ("auth=(", "auth = (", "auth: [", "basicauth(", "login("),
         re.compile(
        r"(?:auth\s?[=:]\s?[(\[]|basicauth\(|login\()\s*[\"'][^\"'\n]{1,100}[\"']\s*,\s*[\"']"
        r"(?P<secret>[^\"'\s]{4,200})[\"']", re.IGNORECASE), folded=True, after_letters=True,
        accepts=_is_password),
    Rule("password of a command", ("echo ", "printf "), re.compile(
        r"(?:echo|printf)\s+(?:-\w+\s+)?(?P<quote>\\?[\"'])?(?:[\w.-]{1,40}:)?"
        r"(?P<secret>[^\s\"'$\\|]{4,100})(?:\\n)?(?(quote)(?P=quote))\s*\|\s*"
        r"(?:sudo\s+(?:-\w+\s+)*-S\b|(?:sudo\s+)?(?:chpasswd|passwd)\b"
        r"|[^\n|]{0,100}(?:password|token|pass)-stdin|[^\n|]{0,40}--with-token"
        r"|[^\n|]{0,60}cryptsetup|[^\n|]{0,80}--passphrase-fd)")),
    Rule("password of a login", ("requirepass ", "masterauth ", "bindpw ", "rootpw "), re.compile(
        r"(?:requirepass|masterauth|bindpw|rootpw)\s+\"?(?P<secret>[^\s\"'\\]{4,200})")),
    Rule("password of a login", ("machine ", "machine\n", "default login "), re.compile(
        r"(?:machine\s+[^\s\\]{1,200}|default)\s+(?:login\s+[^\s\\]{1,200}\s+)?"
        r"(?:account\s+\S{1,100}\s+)?password\s+(?P<secret>[^\s\"'\\]{4,300})")),
    Rule("password of a login", (":5432:", ":*:", ":3306:", ":6432:", ":5433:"), re.compile(
        r":(?:\d{4}|\*):[\w*.-]{1,60}:[\w*.-]{1,60}:(?P<secret>[^\s:\"'\\]{4,200})(?=\s|\\|\"|$)"),
        after_letters=True),
    Rule("password of a login", ('auth"', 'auth\\"', "_auth", "auth:"), re.compile(
        r"(?:auth\\?\"\s*:\s*\\?\"|_auth\s*=\s*\"?|auth:\s+\"?)"
        r"(?P<secret>[A-Za-z0-9+/]{8,2000}={0,2})(?![\w=-])"), after_letters=True,
        accepts=_is_login),
    Rule("password of a login", ("identified by ", " password '", ' password "', "password('",
                                 "with password "), re.compile(
        r"\s?(?:IDENTIFIED (?:WITH \S{1,40} )?BY|PASSWORD)\s*\(?\s*\\?(?P<quote>[\"'])"
        r"(?P<secret>[^\"'\n\\]{4,200})\\?(?P=quote)", re.IGNORECASE), folded=True,
        after_letters=True),
    Rule("password of a login", ("password>", "secret>", "token>", "apikey>", "accesskey>",
                                   "secretkey>", "privatekey>", "passphrase>"),
         re.compile(r"\w+>\s{0,20}(?P<secret>[^<>\s\"']{4,400})\s{0,20}<\\?/"),
         folded=True, after_letters=True, accepts=_is_password),
    Rule("cookie", ("cookie:", 'cookie"', "cookie'", "cookie\\", "--cookie "), re.compile(
        r"(?:Cookie[\"'\\]{0,2}\s{0,3}[:=,]\s{0,3}|--cookie\s+)\\?[\"']?(?P<secret>[\w.-]{1,80}="
        r"(?=[^\n\"'<>${]{0,300}\d)[^\n\"'<>${\\]{16,4000})",
        re.IGNORECASE), folded=True, after_letters=True),
    Rule("cookie", ("\tTRUE\t", "\tFALSE\t"), re.compile(
        r"\t(?:TRUE|FALSE)\t/[^\t\n]{0,100}\t(?:TRUE|FALSE)\t\d{1,12}\t[^\t\n]{1,100}\t"
        r"(?P<secret>[^\s\"'\\]{8,4000})"), after_letters=True),
    Rule("cookie", ("sessid", "sessionid", "connect.sid", "session_token", "session-token",
                    "auth-token=", "jwt=", "laravel_session", "_session=", "li_at=", "csrftoken"),
         re.compile(
        r"[\w.-]{0,60}?(?:sess(?:ion)?_?id|connect\.sid|session[-_]token|auth-token|jwt|laravel_session"
        r"|_session|li_at|csrftoken)=(?P<secret>(?=[\w%.:+/~-]*\d)[\w%.:+/~-]{16,4000}={0,2})",
        re.IGNORECASE), folded=True, before=_NAME_SIGNS,
        after_letters=True),
    Rule("cookie", ('"value"', 'value\\"'), re.compile(
        # As browsers' tools write their cookies.
        r"\"?value\\?\"\s*:\s*\\?\"(?P<secret>[^\"\\\n]{12,4000})\\?\"\s*,\s*\\?\"(?:domain|path"
        r"|expires|httpOnly|secure|sameSite)\\?\""), after_letters=True),
    Rule("password or key", _WORDS, re.compile(
        # A name and its value side by side, as in Kubernetes, Docker and XML.
        rf"{_NAMED}{_ENDS_NAME}\\?[\"']?,?(?:\s|\\[nr]){{1,40}}\\?[\"']?value[\"'\\]{{0,2}}\s*[:=]\s*"
        r"\\?[\"']?(?P<secret>[^\s\"'\\,<>{}]{6,4000})", re.IGNORECASE), folded=True,
        after_letters=True, accepts=_is_password),
    Rule("password or key", ("password(", "passwd(", "secret(", "token(", "apikey("), re.compile(
        r"(?:(?<=set)|(?<=with)|(?<=set_)|(?<=with_))(?:password|passwd|secret|token|apikey)\(\s*\\?"
        r"(?P<quote>[\"'])(?P<secret>[^\s\"'\\]{6,400})\\?(?P=quote)", re.IGNORECASE), folded=True,
        after_letters=True, accepts=_is_password),
    Rule("password or key", ("define(", "setenv(", "putenv(", "setx ", "env "), re.compile(
        r"(?:(?:define|setenv|putenv)\(\s*[\"']?|setx\s+[\"']?|\bENV\s+)[\w.-]{0,60}?(?:pass(?:word|wd)?"
        r"|secret|token|key|salt|credentials?)[\"']?(?:\s*,\s*|\s+|=)"
        r"(?P<quote>[\"'])?(?P<secret>(?(quote)[^\s\"'\\]{6,400}|[^\s\"'\\,<>{}()$]{6,4000}))",
        re.IGNORECASE), folded=True, accepts=_is_password),
    Rule("password or key", _WORDS, re.compile(
        # A line of an environment file: a bare value up to the end of the line.
        r"(?:PASS(?:WORD|WD|PHRASE)?|PWD|SECRET|TOKEN|(?<=_)KEY|CREDENTIALS?)="
        r"(?P<quote>[\"'])?(?P<secret>[^\s\"'`\\]{6,400})(?(quote)(?P=quote)|(?=[\s\"'`\\]|$))"),
        folded=True, after_letters=True, accepts=_is_environment_secret),
    Rule("password or key", _WORDS, _ASSIGNED, folded=True, after_letters=True,
         accepts=_is_assigned_secret),
    Rule("password or key", (*_WORDS, "pat"), _BESIDE, folded=True, after_letters=True,
         accepts=_is_beside_its_name),
    Rule("password or key", ("password", "passphrase", "passcode", "passwort", "api key"),
         re.compile(
        # As people write it in a prompt.
        r"(?:pass(?:word|phrase|code|wort)|api key)s?(?:\s+(?:for|of|to)\s+[^\n:.]{1,40}?)?"
        r"(?:\s+(?:is|ist|to|was)\s*:?|\s*:)\s+[\"'`]?(?P<secret>[^\s\"'`,<>(){}\[\]\\]{6,200})",
        re.IGNORECASE), folded=True, after_letters=True, accepts=_is_told_password),
)

RULES: tuple[Rule, ...] = (*_TOKENS, *_OF_KEYS, *_OF_LOGINS)
"""In the order in which they are tried: of two that overlap, the first one counts."""

EMAIL = Rule(
    "e-mail address", ("@",), re.compile(
        r"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,24}"
        r"(?![A-Za-z0-9-])"),
    before=_LETTERS | _DIGITS | frozenset("._%+-"), accepts=lambda _: True)
"""E-mail addresses; not one of ``RULES``, as they are masked only when asked for."""
