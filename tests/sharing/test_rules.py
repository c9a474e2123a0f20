"""Secrets in text: true ones are found and replaced, what only looks like one is left.

The secrets are made from parts, with random letters from a fixed seed, so that none of them
stands in this file.
"""

from __future__ import annotations

import json
import random
import string
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.sharing.masks import Masking, Masks

RANDOM = random.Random(7)
WORD = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + "234567"


def letters(count: int, among: str = WORD) -> str:
    """Return random characters, with a digit and a letter among them."""
    chosen = [RANDOM.choice(among) for _ in range(count)]
    chosen[1], chosen[2] = "7", RANDOM.choice([one for one in among if one.isalpha()])
    return "".join(chosen)


def key_block(kind: str) -> tuple[str, str]:
    """Return a private key in PEM form, and its secret part."""
    body = "\n".join(letters(64) for _ in range(4))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----", body


TOKENS = {
    "AWS access key": "AKIA" + letters(16, UPPER),
    "AWS temporary key": "ASIA" + letters(16, UPPER),
    "GitHub classic": "ghp_" + letters(36),
    "GitHub app": "ghs_" + letters(36),
    "GitHub fine": "github_pat_" + letters(22) + "_" + letters(59),
    "GitLab": "glpat-" + letters(20),
    "Slack bot": "xoxb-" + letters(12, string.digits + "ab") + "-" + letters(24),
    "Slack app": "xapp-1-" + letters(11) + "-" + letters(60, HEX),
    "Stripe live": "sk_live_" + letters(24),
    "Stripe restricted": "rk_test_" + letters(99),
    "OpenAI old": "sk-" + letters(20) + "T3BlbkFJ" + letters(20),
    "OpenAI project": "sk-proj-" + letters(40) + "_" + letters(40) + "-" + letters(20),
    "Anthropic": "sk-ant-api03-" + letters(50) + "-" + letters(40) + "AA",
    "Anthropic OAuth": "sk-ant-oat01-" + letters(90),
    "OpenRouter": "sk-or-v1-" + letters(64, HEX),
    "DeepSeek": "sk-" + letters(32, HEX),
    "Google": "AIza" + letters(35),
    "Google OAuth": "ya29." + letters(60),
    "Google client": "GOCSPX-" + letters(28),
    "Hugging Face": "hf_" + letters(34),
    "Groq": "gsk_" + letters(52),
    "xAI": "xai-" + letters(80),
    "npm": "npm_" + letters(36),
    "PyPI": "pypi-AgE" + letters(100),
    "Docker": "dckr_pat_" + letters(27),
    "SendGrid": "SG." + letters(22) + "." + letters(43),
    "Telegram": letters(9, string.digits + "1a").replace("a", "3") + ":AA" + letters(33),
    "DigitalOcean": "dop_v1_" + letters(64, HEX),
    "Linear": "lin_api_" + letters(40),
    "Notion": "ntn_" + letters(46),
    "Shopify": "shpat_" + letters(32, HEX),
    "Databricks": "dapi" + letters(32, HEX),
    "Vault": "hvs." + letters(90),
    "Terraform": letters(14) + ".atlasv1." + letters(67),
    "Doppler": "dp.pt." + letters(43),
    "Sentry": "sntrys_" + letters(80),
    "Grafana": "glsa_" + letters(32) + "_" + letters(8, HEX),
    "Supabase": "sbp_" + letters(40, HEX),
    "age": "AGE-SECRET-KEY-1" + letters(58, "023456789ACDEFGHJKLMNPQRSTUVWXYZ"),
    "NVIDIA": "nvapi-" + letters(64),
    "Atlassian": "ATATT3x" + letters(180) + "=" + letters(8, HEX),
    "Artifactory": "AKCp" + letters(69),
    "JWT": "eyJ" + letters(33) + ".eyJ" + letters(80) + "." + letters(43),
}
PASSWORD, LONG = letters(12), letters(40)
BASE64 = letters(84) + "=="
LOGIN = b64encode(f"me:{PASSWORD}".encode()).decode()
SESSION = letters(900)
BLOCK, BODY = key_block("RSA ")
OPENSSH, OPENSSH_BODY = key_block("OPENSSH ")

IN_CONTEXT = {
    "URL": (f"postgresql://app:{PASSWORD}@db.internal:5432/prod", PASSWORD),
    "URL without user": (f"redis://:{PASSWORD}@cache:6379/0", PASSWORD),
    "git remote": (f"https://oauth2:{LONG}@gitlab.example.org/x.git", LONG),
    "environment": (f"export DB_PASSWORD={PASSWORD}\n", PASSWORD),
    "dotenv": (f"SECRET_KEY='{LONG}'\n", LONG),
    "dotenv bare": (f"STRIPE_API_KEY={LONG}\n", LONG),
    "AWS secret": (f"aws_secret_access_key = {LONG}\n", LONG),
    "Python": (f'password = "{PASSWORD}"', PASSWORD),
    "JSON": (json.dumps({"client_secret": LONG}), LONG),
    "JSON in JSON": (json.dumps(json.dumps({"api_key": LONG})), LONG),
    "YAML": (f"  dbPassword: {PASSWORD}!\n", PASSWORD + "!"),
    "camel case": (f'const accessToken = "{LONG}";', LONG),
    "Ruby": (f":secret => '{LONG}'", LONG),
    "Go": (f'apiToken := "{LONG}"', LONG),
    "query": (f"https://example.org/x?access_token={LONG}&y=1", LONG),
    "signature": (f"https://a.blob.core.windows.net/c?sv=2&sig={LONG}%3D", LONG + "%3D"),
    "bearer": (f"Authorization: Bearer {LONG}", LONG),
    "basic": (f'-H "Authorization: Basic {BASE64}"', BASE64),
    "header": (f"x-api-key: {LONG}", LONG),
    "curl": (f"curl -s -u admin:{PASSWORD} https://example.org", PASSWORD),
    "curl at once": (f"curl -u admin:{PASSWORD} https://example.org", PASSWORD),
    "curl long": (f"curl -s \\\n  --user 'me:{PASSWORD}' https://example.org", PASSWORD),
    "mysql": (f"mysql -u root -p{PASSWORD} prod", PASSWORD),
    "redis-cli": (f"redis-cli -h cache -a {PASSWORD} ping", PASSWORD),
    "docker login": (f"docker login -u me -p {PASSWORD} registry.example.org", PASSWORD),
    "netrc": (f"machine api.example.org login me password {PASSWORD}\n", PASSWORD),
    "docker auth": (f'{{"auth": "{LOGIN}"}}', LOGIN),
    "npm auth": (f"_auth={LOGIN}\n", LOGIN),
    "cookie": (f"Cookie: theme=dark; sessionid={LONG}\n", f"theme=dark; sessionid={LONG}"),
    "Telegram URL": (
        f"https://api.telegram.org/bot{TOKENS['Telegram']}/getMe", TOKENS["Telegram"]),
    "YAML plain": (f"password: {'hunter' + '22x'}\n", "hunter" + "22x"),
    "environment, letters": ("DB_PASSWORD=" + "let" + "mein\n", "let" + "mein"),
    "Discord": (f"BOT_TOKEN=MT{LONG[:22]}.G{LONG[22:27]}.{LONG[2:]}",
                f"MT{LONG[:22]}.G{LONG[22:27]}.{LONG[2:]}"),
    "session token": (json.dumps({"SessionToken": SESSION}), SESSION),
    "session token bare": (f"aws_session_token={SESSION}\n", SESSION),
    "Azure": (f"AZURE_OPENAI_KEY={LONG[:32]}\n", LONG[:32]),
    "option": (f"mysql --password={PASSWORD} prod", PASSWORD),
    "option apart": (f"tool login --token {LONG}", LONG),
    "connection string": (f"Server=db;Database=x;User Id=sa;Password={PASSWORD};", PASSWORD),
    "storage": (f"AccountName=x;AccountKey={BASE64};Suffix=y", BASE64),
    "private key": (BLOCK, BODY),
    "OpenSSH key": (OPENSSH, OPENSSH_BODY),
    "key in JSON": (json.dumps({"private_key": BLOCK}), BODY.replace("\n", "\\n")),
    "cut key": (BLOCK[:200], BLOCK[:200].split("-----")[2].strip()),
    "Slack webhook": (
        f"https://hooks.slack.com/services/T{letters(8)}/B{letters(8)}/{LONG[:24]}", LONG[:24]),
}  # fmt: skip

NO_SECRETS = [
    "The password must have at least 12 characters.",
    "token: str = ''",
    "password = get_password(user)",
    "password: Optional[str] = None",
    "api_key = os.environ['OPENAI_API_KEY']",
    "API_KEY=${API_KEY}",
    "API_KEY=$OPENAI_API_KEY",
    "export GITHUB_TOKEN=<your token>",
    "secret = settings.secret_key",
    "password=password",
    "password: changeme",
    "PASSWORD=********",
    "token = tokens[index]",
    "max_tokens: 4096, total_tokens=123456789012",
    "input_tokens=20000 output_tokens=30000",
    "https://example.org/path?page=2&q=token",
    "https://user@example.org/path",
    "ssh://git@github.com:22/owner/name.git",
    "see http://localhost:8080/a:b@c",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "integrity sha512-" + letters(86) + "==",
    "data:image/png;base64," + letters(300),
    "sk-learn and sk-image are packages; task-runner-configuration",
    "the sk-proj-... key",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "AKIAIOSFODNN7EXAMPLE",
    "Bearer authentication is required here",
    "Authorization: Bearer $TOKEN",
    "Basic knowledge of statistics",
    "key-value store; key = value; monkey=banana12345",
    "keyboard: ctrl+p, passwordless login, tokenizer=cl100k_base",
    "secretary: Anna Example",
    "tokenizer_class: LlamaTokenizerFast",
    "eyJ is how a JSON web token begins",
    "-----BEGIN CERTIFICATE-----\n" + letters(64) + "\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n" + letters(64) + "\n-----END PUBLIC KEY-----",
    "ssh-ed25519 " + letters(68) + " me@host",
    "SG. is short for Singapore; HRKU- and NRAK- too",
    "passed: 128, failed: 3, skipped: 12",
    "compass: north, bypass=enabled, passthrough: true",
    "'token' => $request->input('token')",
    "if (user.password === undefined) return",
    "const { accessToken, refreshToken } = await login()",
    "credentials: 'same-origin'",
    "credentials: include",
    "def test_token_refresh_after_401_unauthorized(self):",
    "auth_token=self.auth_token_2026_value",
    "private_key_path: ~/.ssh/id_ed25519",
    "AccountKey=",
    "hf_hub_download, npm_config_registry, gsk_",
    "dapi is nothing; dp.pt is a file",
    "1234567890:30 AA batteries",
    "PWD=/home/me/src/app-2\nOLDPWD=/home/me/src/app-1",
    "pwd: /home/me/code/api2",
    '{"pwd": "/home/me/code/project-7"}',
    "PASS: test_login_2\nPASS: test_login_3",
    '{"password": "#/components/schemas/Password1"}',
    "docker build --secret id=npmrc,src=.npmrc .",
    "Bearer tokens/credentials are described there",
    "Basic authentication-scheme/realm handling",
    '{"auth": "aGVsbG8gd29ybGQgYW5kIG1vcmU="}',
    "Cookie: a small file; see cookie: httpOnly=true",
    "mysql -u root -p prod < dump.sql; mysqld --port=3306",
    "password: user1Password, next",
]


@pytest.mark.parametrize("name", TOKENS)
@pytest.mark.parametrize(
    "around", ["{}", "key {} here", '"{}"', "({})", "x={},", "`{}`.", "\n{}\n"])
def test_a_key_is_masked_wherever_it_stands(name: str, around: str) -> None:
    token = TOKENS[name]
    masks = Masks()
    text = masks.mask(around.format(token))
    assert token[-12:] not in text
    assert "[masked " in text
    before, _, after = around.partition("{}")
    assert text.startswith(before[:2]) and text.endswith(after)
    assert sum(masks.counts.values()) == 1


@pytest.mark.parametrize("name", IN_CONTEXT)
def test_a_secret_is_known_by_what_stands_beside_it(name: str) -> None:
    text, secret = IN_CONTEXT[name]
    masked = Masks().mask(text)
    assert secret not in masked
    assert secret[:6] not in masked
    before, after = text.split(secret, 1)
    assert masked.startswith(before[:8])
    assert masked.endswith(after.removeprefix("\\n").lstrip("\n"))


@pytest.mark.parametrize("text", NO_SECRETS)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert Masks().mask(text) == text


def test_json_values_are_masked_by_their_keys_and_stay_json() -> None:
    value = {"password": PASSWORD, "note": ["see", TOKENS["npm"]], "count": 3, "token": None,
             "nested": {"apiKey": LONG, "path": "/a/b"}}  # fmt: skip
    masked = Masks().mask_json(value)
    assert masked == {
        "password": "[masked password or key]", "note": ["see", "[masked npm token]"],
        "count": 3, "token": None,
        "nested": {"apiKey": "[masked password or key 2]", "path": "/a/b"},
    }  # fmt: skip


def test_addresses_are_masked_only_when_asked() -> None:
    text = "mail anna.example+x@mail.example.org, not a@b or git@github"
    assert Masks().mask(text) == text
    masked = Masks(Masking(emails=True)).mask(text)
    assert masked == "mail [masked e-mail address], not a@b or git@github"


@pytest.mark.parametrize("text", [
    "sk-" * 60_000, "token=" * 60_000, "cookie: a=1;" * 10_000, "cookie: " + "a=1;" * 60_000,
    f"db://b:{PASSWORD}@c password={PASSWORD}\n" * 15_000, "A" * 3_000_000, "key is " * 30_000,
], ids=["sk", "token", "cookie", "cookies", "many", "zeros in base64", "key"])  # fmt: skip
@pytest.mark.one_in(3)
def test_a_text_of_what_secrets_begin_with_is_read_once(text: str) -> None:
    assert PASSWORD not in Masks().mask(text)  # Quadratic time would take minutes.


def test_counts_are_by_kind() -> None:
    masks = Masks()
    masks.mask(f"{TOKENS['npm']} {TOKENS['npm']} {TOKENS['Google']}")
    assert masks.counts == {"npm token": 2, "Google API key": 1}


@given(st.text(), st.sampled_from(sorted(TOKENS.values())), st.text())
def test_any_text_may_stand_around_a_key(before: str, token: str, after: str) -> None:
    text = f"{before} {token} {after}"
    found = Masks().find(text)
    start = len(before) + 1
    assert any(one.start <= start and one.end >= start + len(token) - 1 for one in found)
    assert all(a.end <= b.start for a, b in zip(found, found[1:], strict=False))


@given(st.text(alphabet="pasword:=\"' \\ketn-_AKIA/@.:{}<>1234567890", max_size=300))
def test_text_of_its_words_is_masked_once_and_for_all(text: str) -> None:
    masked = Masks().mask(text)
    assert len(masked) < 40 * len(text) + 1


def test_the_turkish_letter_that_grows_in_lower_case_moves_nothing() -> None:
    text = f"İİİ PASSWORD={PASSWORD} x"
    assert Masks().mask(text) == "İİİ PASSWORD=[masked password or key] x"
