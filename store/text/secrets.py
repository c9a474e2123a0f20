"""Finds keys, tokens, private keys and passwords in text, and replaces them.

A rule has words that its secrets begin with or stand beside (``ghp_``, ``password``). The words
are looked for first, by plain string search; the rule's pattern is tried only where one was
found. So a text without secrets costs one string search a word: about 15 MB/s. No rule goes by
entropy alone: hashes, ids and prose stay readable.

The prefixes and lengths are those that the services give their keys. A password or key without
a prefix is recognised by what it is assigned to, in code, environment files, command lines,
headers, URLs and connection strings, where its value is not a variable, a call or a placeholder.
"""

from __future__ import annotations

import re
from base64 import b64decode
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


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
    r"|(?:your|my|an?|the|some|insert|replace|enter)[-_ ].*"
    r"|(?:changeme|example|placeholder|redacted|secret|password|passwd|pass|token|string|none|null"
    r"|nil|true|false|undefined|required|optional|str|bytes|test|dummy|fake|todo|hidden|masked"
    r"|changeit|default|value|key)\d{0,2}",
    re.IGNORECASE | re.DOTALL,
)
_FILLED_IN = re.compile(
    r"(.)\1{7,}|(?:example|xxxx|your[-_]|\*\*\*|\.\.\.|<|\$\{|0123456789)", re.IGNORECASE)


def _is_filled_in(match: re.Match[str]) -> bool:
    return not _is_placeholder(match[_group(match)])


def _is_placeholder(value: str) -> bool:
    """Return whether a value only shows where a secret goes."""
    return bool(_PLACEHOLDER.fullmatch(value) or _FILLED_IN.search(value[:200]))


@dataclass(frozen=True, slots=True)
class Rule:
    """How one kind of secret is recognised.

    Attributes:
        kind: What it is, for people.
        words: One of these is in the text where there is such a secret; in lower case where
            ``folded``.
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

    def secrets(self, text: str, lowered: str) -> Iterator[Secret]:
        """Yield the secrets of this kind in a text.

        Args:
            text: The text.
            lowered: The text in lower case, character by character.
        """
        done = 0
        for at in _places(lowered if self.folded else text, self.words):
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


def _places(text: str, words: Iterable[str]) -> Sequence[int]:
    found = []
    for word in words:
        at = text.find(word)
        while at >= 0:
            found.append(at)
            at = text.find(word, at + len(word))
    return sorted(found)


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
    r"(?:pass(?:word|wd|phrase)|(?<![a-z])pass|pwd|secret(?:[-_.]?(?:access)?[-_.]?key)?"
    r"|(?:api|auth|openai|subscription)[-_.]?key|client[-_.]?key[-_.]?data"
    r"|(?:access|account|private|encryption|signing|master|service)[-_.]?key"
    r"|client[-_.]?secret|credentials?|token)"
)
_ASSIGNED = re.compile(
    # A name that ends with one of the words, its closing quote, a sign of assignment, and a
    # value in quotes (escaped ones, too, as within JSON) or a bare one.
    rf"[\w.-]{{0,60}}?{_NAMED}[\"'\\]{{0,2}}\s{{0,3}}(?::=|=>|:|==?)\s{{0,3}}"
    r"(?P<quote>\\?[\"'`])?"
    r"(?P<secret>(?(quote)[^\"'`\\\n]{4,4000}|[^\s\"'`,;(){}<>\[\]\\&]{6,4000}))(?(quote)(?P=quote))",
    re.IGNORECASE,
)


def _is_assigned_secret(match: re.Match[str]) -> bool:
    """Return whether the value of an assignment looks like a secret, not like code or prose."""
    quoted, value = match["quote"] is not None, match["secret"]
    name = match[0][: match.start("secret") - match.start()]
    if _is_placeholder(value):
        return False
    if name.rstrip("\"'`\\").endswith("=") and name.isupper() and "PASS" in name and (
        len(value) >= 6 and value.isidentifier() and not value.isupper()
    ):
        return True  # A variable of the environment.
    ends_line = match.string[match.end() : match.end() + 1] in ("", "\n", "\r")
    return _may_be_secret(value, name.lower(), quoted=quoted, ends_line=ends_line)


def _may_be_secret(value: str, name: str, *, quoted: bool, ends_line: bool) -> bool:
    """Return whether an assigned value looks like a secret rather than code or prose.

    Args:
        value: The value.
        name: What it is assigned to, in lower case, with the sign of assignment.
        quoted: Whether it is in quotes.
        ends_line: Whether nothing follows it in its line.
    """
    is_password = "pass" in name or "pwd" in name
    if " " in value or "\t" in value:
        return False
    if "pwd" in name and _PATH.match(value):
        return False  # The present folder.
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
    """Return whether digits stand between letters too often for the name of a variable."""
    return any(
        len(piece) >= 16 and "_" not in piece and len(re.findall(r"\d+", piece)) >= 2
        for piece in re.split("[.:]", value)
    )


_TEST_PASSED = re.compile(r"pass\W")
_PATH = re.compile(r"[/~]|[A-Za-z]:[\\/]")


def _is_login(match: re.Match[str]) -> bool:
    """Return whether a value is a name and a password in base64, with a colon between them."""
    value = match["secret"].rstrip("=")
    return b":" in b64decode(value[: len(value) // 4 * 4])


_DIGITS = frozenset("0123456789")
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")

RULES: tuple[Rule, ...] = (
    _token("AWS access key", r"[A-Z2-7]{16}", "AKIA", "ASIA", "ABIA", "ACCA"),
    _token("GitHub token", r"[A-Za-z0-9]{36,255}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _token("GitHub token", r"\w{60,255}", "github_pat_"),
    _token("GitLab token", r"[\w.-]{20,300}", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-"),
    _token("Slack token", r"[abeprs](?:\.xox[bp])?-[A-Za-z0-9.-]{10,300}", "xox"),
    _token("Slack token", r"\d-[A-Za-z0-9-]{20,300}", "xapp-"),
    Rule("Slack webhook", ("hooks.slack.com/",), re.compile(
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{20,200})")),
    Rule("Discord webhook", ("/api/webhooks/",), re.compile(
        r"/api/webhooks/\d{15,22}/(?P<secret>[\w-]{50,120})"), after_letters=True),
    Rule("Stripe key", ("k_live_", "k_test_"), re.compile(
        r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,250}(?![A-Za-z0-9])"), before=frozenset("rs")),
    _token("webhook secret", r"[A-Za-z0-9+/=]{24,100}", "whsec_"),
    # Anthropic, OpenAI, OpenRouter, DeepSeek and those that took the form over.
    _token("API key", r"(?=[\w-]{0,80}\d)(?=[\w-]{0,80}[A-Za-z0-9]{12})[\w-]{20,300}", "sk-"),
    _token("Google API key", r"[\w-]{35}", "AIza"),
    _token("Google OAuth token", r"[\w.-]{20,500}", "ya29."),
    _token("Google client secret", r"[\w-]{28}", "GOCSPX-"),
    _token("Hugging Face token", r"[A-Za-z0-9]{30,60}", "hf_"),
    _token("Groq key", r"[A-Za-z0-9]{40,60}", "gsk_"),
    _token("xAI key", r"[A-Za-z0-9]{60,100}", "xai-"),
    _token("Perplexity key", r"[A-Za-z0-9]{40,60}", "pplx-"),
    _token("Replicate token", r"[A-Za-z0-9]{36,40}", "r8_"),
    _token("Cerebras key", r"[a-z0-9]{40,60}", "csk-"),
    _token("NVIDIA key", r"[\w-]{60,80}", "nvapi-"),
    _token("Tavily key", r"[A-Za-z0-9-]{28,60}", "tvly-"),
    _token("Atlassian token", r"[\w=-]{60,300}", "ATATT3"),
    _token("Artifactory key", r"[A-Za-z0-9]{60,90}", "AKCp"),
    _token("Pulumi token", r"[a-f0-9]{40}", "pul-"),
    _token("CircleCI token", r"[A-Za-z0-9]{22}_[a-f0-9]{40}", "CCIPAT_", "CCIPRJ_"),
    _token("npm token", r"[A-Za-z0-9]{36}", "npm_"),
    _token("PyPI token", r"[\w-]{50,300}", "pypi-AgE"),
    _token("Docker token", r"[\w-]{27,40}", "dckr_pat_", "dckr_oat_"),
    _token("RubyGems key", r"[0-9a-f]{48}", "rubygems_"),
    _token("SendGrid key", r"[\w-]{16,24}\.[\w-]{32,50}", "SG."),
    _token("Mailgun key", r"[0-9a-f]{32}", "key-"),
    _token("Twilio key", r"[0-9a-f]{32}", "SK", "AC"),
    Rule("Telegram token", (":AA",), re.compile(r"(?<!\d)\d{8,10}:AA[\w-]{32,36}(?![\w-])"),
         before=_DIGITS, after_letters=True),  # Behind ``bot`` in a URL.
    Rule("DigitalOcean token", ("_v1_",), re.compile(
        r"do[opr]_v1_[a-f0-9]{64}(?![A-Za-z0-9])"), before=frozenset("dopr")),
    _token("Heroku key", r"[\w-]{36,80}", "HRKU-"),
    _token("Linear key", r"[A-Za-z0-9]{40}", "lin_api_", "lin_oauth_"),
    _token("Notion token", r"[A-Za-z0-9]{40,60}", "ntn_", "secret_"),
    _token("Figma token", r"[\w-]{36,60}", "figd_", "figu_"),
    _token("Shopify token", r"(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", "shp"),
    _token("Square token", r"(?:atp|csp)-[\w-]{22,60}", "sq0"),
    _token("Databricks token", r"[a-f0-9]{32}(?:-\d)?", "dapi"),
    _token("Vault token", r"[\w-]{24,300}", "hvs.", "hvb.", "hvr."),
    Rule("Terraform token", (".atlasv1.",), re.compile(r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,80}"),
         before=_LETTERS | _DIGITS),
    _token("Doppler token",
           r"(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]{1,60}\.)?[A-Za-z0-9]{40,44}", "dp."),
    _token("Sentry token", r"[su]_[\w+/=-]{40,300}", "sntry"),
    _token("New Relic key", r"[A-Z0-9]{27}", "NRAK-"),
    _token("Grafana token", r"[\w+/=]{32,300}", "glsa_", "glc_"),
    _token("PlanetScale token", r"(?:tkn|pw|oauth)_[\w.=-]{32,64}", "pscale_"),
    _token("Supabase token", r"[a-z0-9_]{36,60}", "sbp_", "sb_secret_"),
    _token("age key", r"[02-9AC-HJ-NP-Z]{58}", "AGE-SECRET-KEY-1"),
    _token("Fly token", r"[\w+/=,-]{60,2000}", "FlyV1 fm2_"),
    _token("Postman key", r"[a-f0-9]{24}-[a-f0-9]{34}", "PMAK-"),
    _token("Tailscale key", r"[a-z]+-[A-Za-z0-9]{10,20}-[A-Za-z0-9]{20,50}", "tskey-"),
    _token("JSON web token", r"[\w-]{10,2000}\.eyJ[\w-]{10,8000}\.[\w-]{10,2000}", "eyJ"),
    Rule("private key", ("-----BEGIN ",), re.compile(
        # Up to its end, else as far as its lines go; line ends may be escaped, as in JSON.
        r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        r"(?P<secret>(?:(?!-----)[A-Za-z0-9+/=:,.\s\\()-]){16,20000})"), after_letters=True),
    Rule("private key", ("PuTTY-User-Key-File-",), re.compile(
        r"PuTTY-User-Key-File-\d(?:(?!PuTTY)[\s\S]){0,4000}?Private-Lines: \d+\s+"
        r"(?P<secret>[A-Za-z0-9+/=\s]{64,8000})")),
    Rule("Azure storage key", ("accountkey=", "sharedaccesskey="), re.compile(
        r"(?:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/]{40,90}={0,2})", re.IGNORECASE),
        folded=True, after_letters=True),
    Rule("signature", ("sig=", "x-amz-signature=", "x-goog-signature="), re.compile(
        r"(?:sig|X-(?:Amz|Goog)-Signature)=(?P<secret>[A-Za-z0-9%+/=-]{32,700})", re.IGNORECASE),
        folded=True),
    Rule("password in a URL", ("://",), re.compile(
        r"[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s:@/\"'<>]{0,200}:(?P<secret>[^\s/\"'<>]{1,300})@"
        r"(?=[\w.\[-])"), before=_LETTERS | _DIGITS | frozenset("+.-")),
    Rule("credentials in a header", ("authorization", "bearer ", "basic ", "x-api-key"),
         re.compile(
             r"(?:Bearer\s+|Basic\s+|Authorization[\"']?\s*[:=]\s*[\"']?(?:(?:Bearer|Basic|Token|Digest"
             r"|ApiKey)\s+)?|x-api-key[\"']?\s*[:=]\s*[\"']?)"
             r"(?P<secret>(?=[^\s\"']*[\d+=])[\w.~+/=-]{16,4000})", re.IGNORECASE), folded=True),
    Rule("password of a command", ("--password", "--passwd", "--token", "--api-key", "--secret"),
         re.compile(
             r"--(?:[a-z]+-)?(?:password|passwd|token|api-key|secret)(?:=|\s+)[\"']?"
             r"(?P<secret>(?!id=)[^\s\"'<>$({\[-][^\s\"'<>]{5,300})", re.IGNORECASE), folded=True,
         after_letters=True),
    Rule("password of a command", ("curl ", "sshpass "), re.compile(
        r"(?:curl(?=\s)(?:[^\n]|\\\n){0,400}?\s(?:-u\s*|--user[\s=]+)[\"']?[^\s:\"']{1,100}:"
        r"|sshpass\s+-p\s*[\"']?)(?P<secret>[^\s\"'$]{3,200})")),
    Rule("password of a command", ("mysql", "mariadb", "redis-cli ", "docker login "), re.compile(
        r"(?:(?:mysql|mariadb)(?:-?(?:dump|admin))?(?=\s)[^\n|;]{0,200}?\s-p[\"']?"
        r"|redis-cli(?=\s)[^\n|;]{0,200}?\s-a\s+[\"']?"
        r"|docker login(?=\s)[^\n|;]{0,200}?\s-p\s+[\"']?)"
        r"(?P<secret>[^\s\"'$<{(\[-][^\s\"'<>]{3,200})")),
    Rule("password of a login", ("machine ",), re.compile(
        r"machine\s+\S{1,200}\s+login\s+\S{1,200}\s+password\s+(?P<secret>\S{4,300})")),
    Rule("password of a login", ('auth"', 'auth\\"', "_auth"), re.compile(
        r"(?:auth\\?\"\s*:\s*\\?\"|_auth\s*=\s*\"?)(?P<secret>[A-Za-z0-9+/]{12,2000}={0,2})"
        r"(?![\w=-])"), after_letters=True, accepts=_is_login),
    Rule("cookie", ("cookie:", 'cookie"', "cookie'"), re.compile(
        r"Cookie[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<secret>[\w.-]{1,80}="
        r"(?=[^\n\"'<>${]{0,300}\d)[^\n\"'<>${]{16,4000})",
        re.IGNORECASE), folded=True, after_letters=True),
    Rule("password or key", ("pass", "pwd", "secret", "token", "key", "credential"), _ASSIGNED,
         folded=True, before=_LETTERS | _DIGITS | frozenset("_.-"), after_letters=True,
         accepts=_is_assigned_secret),
)
"""In the order in which they are tried: of two that overlap, the first one counts."""

EMAIL = Rule(
    "e-mail address", ("@",), re.compile(
        r"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,24}"
        r"(?![A-Za-z0-9-])"),
    before=_LETTERS | _DIGITS | frozenset("._%+-"), accepts=lambda _: True)
"""E-mail addresses; not one of ``RULES``, as they are masked only when asked for."""


class Masks:
    """What is masked in a text.

    Attributes:
        counts: How often each kind was masked.
    """

    def __init__(self, rules: Iterable[Rule] = RULES) -> None:
        """Choose the rules; in their order, the first one counts of two that overlap."""
        self._rules = tuple(rules)
        self.counts: Counter[str] = Counter()

    def find(self, text: str) -> list[Secret]:
        """Return the secrets in a text, in their order; none overlaps another."""
        lowered = _lowered(text)
        found: list[Secret] = []
        for rule in self._rules:
            if more := [one for one in rule.secrets(text, lowered) if _is_free(found, one)]:
                found = sorted([*found, *more], key=_start_of)
        return found

    def mask(self, text: str) -> str:
        """Return a text with its secrets replaced by what they are, and count them."""
        pieces, done = list[str](), 0
        for secret in self.find(text):
            pieces += [text[done : secret.start], f"[masked {secret.kind}]"]
            done = secret.end
            self.counts[secret.kind] += 1
        return "".join([*pieces, text[done:]]) if pieces else text

    def mask_json(self, value: Any) -> Any:
        """Return decoded JSON with the secrets in its texts replaced, those of keys, too.

        A text under a key such as ``password`` is masked by the key's name.
        """
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, list):
            return [self.mask_json(one) for one in value]
        if isinstance(value, dict):
            return {self.mask(str(key)): self._mask_member(str(key), one)
                    for key, one in value.items()}
        return value

    def _mask_member(self, key: str, value: Any) -> Any:
        masked = self.mask_json(value)
        if not isinstance(value, str) or masked != value:
            return masked
        before = f'"{key}": "'
        found = [one for one in self.find(f'{before}{value}"') if one.start == len(before)]
        if not found or found[0].end != len(before) + len(value):
            return value
        self.counts[found[0].kind] += 1
        return f"[masked {found[0].kind}]"


def _start_of(secret: Secret) -> int:
    return secret.start


def _is_free(found: list[Secret], secret: Secret) -> bool:
    """Return whether a secret overlaps none of those that were found, which are in order."""
    before = bisect_left(found, secret.end, key=_start_of) - 1
    return before < 0 or found[before].end <= secret.start


def _lowered(text: str) -> str:
    """Return a text in lower case, with every character at its place."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    # Some letters become two (U+0130).
    return "".join(low if len(low := one.lower()) == 1 else one for one in text)
