"""True and false secrets of many kinds, made from random letters so that no real one is here.

Each true one is a text and what in it may not go out; each false one is a text that stays.
"""

from __future__ import annotations

import json
import random
import string
from base64 import b64encode

_RANDOM = random.Random(11)
WORD = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
BASE64 = WORD + "+/"


def letters(count: int, among: str = WORD) -> str:
    """Return random characters, with a digit and a letter among them."""
    chosen = [_RANDOM.choice(among) for _ in range(count)]
    chosen[1], chosen[2] = "7", _RANDOM.choice([one for one in among if one.isalpha()])
    return "".join(chosen)


def packed(text: str) -> str:
    """Return a text in base64."""
    return b64encode(text.encode()).decode()


def uuid() -> str:
    """Return a random UUID."""
    return "-".join(letters(count, HEX) for count in (8, 4, 4, 4, 12))


P, Q = letters(12), "p4$" + letters(8) + "!x"
M = "q7W" + "x2KfT9cV4hZ0bRmJ5sYu3G"
L, H32, H64 = letters(40), letters(32, HEX), letters(64, HEX)
PEM = "\n".join(letters(64, BASE64) for _ in range(5))
JWT = f"eyJ{letters(33)}.eyJ{letters(80)}.{letters(43)}"
LOGIN = packed(f"ann:{P}")


def _pem(kind: str, end: str = "\n") -> str:
    return f"-----BEGIN {kind}-----{end}{PEM.replace(chr(10), end)}{end}-----END {kind}-----"


_GIVEN: list[tuple[str, str]] = [
    # Clouds
    (f"aws_secret_access_key = {L}", L),
    (f"AWS_SECRET_ACCESS_KEY={L}", L),
    (f"<SecretAccessKey>{L}</SecretAccessKey>", L),
    (json.dumps({"SecretAccessKey": L, "SessionToken": letters(300)}), L),
    (f"AZURE_CLIENT_SECRET={letters(3)}8Q~{(k := letters(34))}", k),
    (f"DefaultEndpointsProtocol=https;AccountName=x;AccountKey={(k := letters(86, BASE64))}==;", k),
    (f"Endpoint=sb://x.servicebus.windows.net/;SharedAccessKey={(k := letters(43, BASE64))}=", k),
    (f"https://x.blob.core.windows.net/c?sv=2024&sig={(k := letters(43))}%3D", k),
    (json.dumps({"type": "service_account", "private_key": _pem("PRIVATE KEY")}), PEM[:64]),
    (f"https://storage.googleapis.com/b/o?X-Goog-Signature={letters(128, HEX)}", ""),
    (f"refresh_token: 1//0{(k := letters(60))}", k),
    (f"LTAI{(k := letters(20))}", k), (f"cfut_{(k := letters(40))}", k),
    (f"dop_v1_{H64}", H64), (f"nfp_{(k := letters(36))}", k), (f"rnd_{(k := letters(32))}", k),
    # Services
    (f"xoxb-{letters(12, string.digits + 'ab')}-{(k := letters(24))}", k),
    (f"https://hooks.slack.com/services/T{letters(8)}/B{letters(8)}/{(k := letters(24))}", k),
    (f"https://discord.com/api/webhooks/{'1' * 8}23456789012/{(k := letters(68))}", k),
    (f"https://x.webhook.office.com/webhookb2/{(k := uuid())}@{uuid()}/IncomingWebhook/{H32}/"
     f"{uuid()}", k),
    (f"https://hooks.zapier.com/hooks/catch/1234567/{(k := letters(20))}/", k),
    (f"https://open.feishu.cn/open-apis/bot/v2/hook/{(k := uuid())}", k),
    (f"https://chat.example.org/hooks/{(k := letters(26, LOWER))}", k),
    (f"whsec_{(k := letters(32))}", k), (f"sk_live_{(k := letters(24))}", k),
    (f"glpat-{(k := letters(20))}", k), (f"glrt-{(k := letters(20))}", k),
    (f"github_pat_{letters(22)}_{(k := letters(59))}", k), (f"ghs_{(k := letters(36))}", k),
    (f"npm_{(k := letters(36))}", k), (f"pypi-AgEIcHlwaS5vcmc{(k := letters(100))}", k),
    (f"hf_{(k := letters(34))}", k), (f"sk-ant-api03-{(k := letters(93))}AA", k),
    (f"sk-proj-{(k := letters(60))}", k), (f"gsk_{(k := letters(52))}", k),
    (f"AIza{(k := letters(35))}", k), (f"tgp_v1_{(k := letters(43))}", k),
    (f"lsv2_pt_{(k := H32)}_{letters(10, HEX)}", k), (f"pcsk_{(k := letters(60))}", k),
    (f"re_{letters(8)}_{(k := letters(24))}", k), (f"{H32}-us12", H32),
    (f"SG.{letters(22)}.{(k := letters(43))}", k), (f"xkeysib-{H64}-{letters(16)}", H64),
    (f"MT{letters(24)}.G{letters(5)}.{(k := letters(38))}", k),
    (f"https://api.telegram.org/bot123456789:AA{(k := letters(33))}/getMe", k),
    (f"shpat_{H32}", H32), (f"dapi{H32}", H32), (f"hvs.{(k := letters(90))}", k),
    (f"{letters(14)}.atlasv1.{(k := letters(67))}", k), (f"sntrys_{(k := letters(80))}", k),
    (f"glsa_{(k := letters(32))}_{letters(8, HEX)}", k), (f"sbp_{letters(40, HEX)}", ""),
    (f"patAbCdEfGhIjKlM0.{H64}".replace("patAbCdEfGhIjKlM0", "pat" + letters(14)), H64),
    (f"ntn_{(k := letters(46))}", k), (f"lin_api_{(k := letters(40))}", k),
    (f"figd_{(k := letters(40))}", k), (f"pat-na1-{(k := uuid())}", k),
    (f"NRAK-{(k := letters(27, string.ascii_uppercase + string.digits))}", k),
    (f"access-production-{(k := uuid())}", k), (f"bkua_{(k := letters(40, HEX))}", k),
    (f"squ_{(k := letters(40, HEX))}", k), (f"dckr_pat_{(k := letters(27))}", k),
    (f"AGE-SECRET-KEY-1{(k := letters(58, '023456789ACDEFGHJKLMNPQRSTUVWXYZ'))}", k),
    (JWT, JWT[40:]), (f"Authorization: Bearer {JWT}", JWT[40:]),
    # Databases
    *((f"{kind}://app:{P}@db.internal:5432/prod", P) for kind in (
        "postgresql", "postgres", "mysql", "mariadb", "mongodb", "mongodb+srv", "redis", "rediss",
        "amqp", "mssql+pyodbc", "oracle+cx_oracle", "clickhouse", "snowflake", "cockroachdb",
        "postgresql+asyncpg", "ftp", "smtp", "ldap", "couchdb", "neo4j+s", "nats", "cassandra")),
    (f"redis://:{P}@cache:6379/0", P),
    (f"postgresql://app:{P}/{L[:6]}@db/prod", P),
    (f"Server=db;Database=x;User Id=sa;Password={Q};", Q),
    (f"Host=db;Username=u;Pwd={P}", P),
    (f"jdbc:mysql://db/x?user=u&password={P}", P),
    (f"jdbc:oracle:thin:scott/{P}@db:1521:xe", P),
    (f"sqlplus scott/{P}@orcl", P), (f"root:{P}@tcp(127.0.0.1:3306)/x", P),
    (f"host=db user=u password={P} dbname=x", P),
    (f"db.internal:5432:prod:app:{P}\n", P),
    (f"CREATE USER x WITH PASSWORD '{P}';", P), (f"IDENTIFIED BY '{P}'", P),
    (f"requirepass {P}\npassword: {Q}\n", Q), (f"requirepass {P}\n", P),
    # Files
    (f"machine api.example.net login ann password {P}\n", P),
    (f"machine api.example.net\n  login ann\n  password {P}\n", P),
    (f"//registry.npmjs.org/:_authToken={(k := uuid())}", k), (f"_auth={LOGIN}", LOGIN),
    (json.dumps({"auths": {"r.example.net": {"auth": LOGIN}}}), LOGIN),
    (f".dockerconfigjson: {(k := packed(json.dumps({'auths': {'r': {'auth': LOGIN}}})))}", k),
    (f"client-key-data: {(k := packed(_pem('RSA PRIVATE KEY')))}", k),
    (f"users:\n- user:\n    token: {JWT}\n", JWT[40:]),
    (f"env:\n  - name: DB_PASSWORD\n    value: {Q}\n", Q),
    (f'"name": "API_TOKEN", "value": "{L}"', L),
    (f'<add key="ApiKey" value="{L}" />', L), (f"<password>{Q}</password>", Q),
    (f"spring.datasource.password={P}", P), (f"ansible_become_password: {Q}", Q),
    (f'variable "x" {{\n  db_password = "{Q}"\n}}', Q), (f"define('DB_PASSWORD', '{Q}');", Q),
    (f'os.environ["API_KEY"] = "{L}"', L), (f'const apiKey: string = "{L}";', L),
    (f"$env:API_KEY = '{L}'", L), (f"ENV API_TOKEN {L}", L), (f"setx API_KEY {L}", L),
    (f'db.setPassword("{Q}")', Q), (f"x.with_token('{L}')", L),
    (f"OPENWEATHER_KEY={H32}", H32), (f'MAPS_KEY="{L}"', L), (f"az x --account-key {L}", L),
    (f"PrivateKey = {(k := letters(43, BASE64))}=", k),
    (f'{{"kty":"RSA","n":"x","d":"{(k := letters(300))}"}}', k),
    (f".example.net\tTRUE\t/\tTRUE\t1900000000\tsid\t{L}", L),
    (json.dumps({"name": "sid", "value": L, "domain": ".x.net", "path": "/"}), L),
    (f"Set-Cookie: session={L}; Path=/; HttpOnly", L), (f"PHPSESSID={L}", L),
    (f"curl --cookie 'sid={L}' https://x.net", L),
    # Commands and headers
    (f"curl -u ann:{P} https://x.net", P), (f"sshpass -p {P} ssh x", P),
    (f"mysql -uroot -p{P} x", P), (f"PGPASSWORD={P} psql -h db", P),
    (f"redis-cli -a {P}", P), (f"mongosh -u x -p {P}", P), (f"unzip -P {P} a.zip", P),
    (f"openssl rsa -passin pass:{P} -in k", P), (f"echo '{P}' | sudo -S ls", P),
    (f"echo {P} | docker login -u x --password-stdin", P), (f"vault login --token {L}", L),
    (f"helm install x --set auth.password={P}", P),
    (f"kubectl create secret generic x --from-literal=password={P}", P),
    (f"git clone https://ann:{L}@git.example.net/x.git", L),
    (f"git remote add o https://{L}@git.example.net/x.git", L),
    (f"Authorization: Basic {LOGIN}", LOGIN), (f"Proxy-Authorization: Basic {LOGIN}", LOGIN),
    (f"Authorization: token {L}", L), (f"X-Api-Key: {L}", L), (f"PRIVATE-TOKEN: {L[:20]}", L[:20]),
    (f"X-Vault-Token: {L}", L), (f"Ocp-Apim-Subscription-Key: {H32}", H32),
    (f"Authorization: AWS4-HMAC-SHA256 Credential=AKX/2026/x, SignedHeaders=h, Signature={H64}",
     H64),
    (f"https://api.example.net/v1?api_key={H32}&x=1", H32),
    (f"https://maps.example.net/js?key={L}", L),
    (f"the password for the box is {Q}, please", Q[:-1]),
    (f"my api key is {L}", L),
    # A random value near the name of what it is
    *((form.replace("@", M), M) for form in (
        "set -gx API_TOKEN @", "aws configure set aws_secret_access_key @",
        "npm config set //registry.npmjs.org/:_authToken @", "poetry config pypi-token.pypi @",
        "ngrok config add-authtoken @", "vault login @", "gh secret set MY_TOKEN --body @",
        "kubectl create secret generic x --from-literal=key=@", "tool --client-secret @",
        "os.environ.get('API_KEY', '@')", "process.env.API_KEY || '@'", "const KEY = '@'",
        "let token = SecretString::new(\"@\".into());", "password: SecretStr = SecretStr('@')",
        "headers.set('X-Auth-Token', '@')", "auth=('ann', '@')", "| API key | `@` |",
        "**Token:** @", "your new token is @", "<key>APIKey</key><string>@</string>", "API Key\n@",
        "DD-APPLICATION-KEY: @", "license_key: '@'", "jwt_key: '@'", "pat: '@'",
        "Authorization: Api-Key @", "gh auth login --with-token <<< '@'")),
    ("VERCEL_TOKEN=VzFppsBGuFe" + "JaA9cFtpfNbDJ", "FppsBGuFe" + "JaA9"),
    (f"Authorization: bearer {'A' * 22}{letters(80)}", ""),
    # Private keys
    *((_pem(kind), PEM[:64]) for kind in (
        "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK")),
    (_pem("RSA PRIVATE KEY", "\r\n"), PEM[:64]), (_pem("RSA PRIVATE KEY", "\\n"), PEM[:64]),
    (_pem("RSA PRIVATE KEY", "\\\\n"), PEM[-64:]), (_pem("RSA PRIVATE KEY", "\n+"), PEM[-64:]),
    (_pem("RSA PRIVATE KEY", "\n    12→"), PEM[-64:]),
    # In diffs
    (f"+DB_PASSWORD={P}\n-DB_PASSWORD={L}\n", P), (f'+  "password": "{Q}",', Q),
]  # fmt: skip

TRUE: list[tuple[str, str]] = [
    (text, secret or text[-40:]) for text, secret in _GIVEN]

FALSE: list[str] = [
    "commit " + letters(40, HEX), "sha256:" + H64, f"sha512-{letters(86, BASE64)}==",
    uuid(), f"id: {uuid()}", f'"integrity": "sha512-{letters(86, BASE64)}=="',
    f"resolved \"https://registry.example.net/x/-/x-1.0.0.tgz#{letters(40, HEX)}\"",
    f"checksum = \"{H64}\"", f"etag: \"{H32}\"", f"--hash=sha256:{H64}",
    f"go.sum h1:{letters(43, BASE64)}=", f"![x](data:image/png;base64,{letters(400, BASE64)})",
    f"ssh-ed25519 AAAA{letters(64, BASE64)} ann@host", f"-----BEGIN CERTIFICATE-----\n{PEM}\n",
    f"-----BEGIN PUBLIC KEY-----\n{PEM}\n", f"client-certificate-data: {packed('-----BEGIN CERT')}",
    "password = getpass.getpass()", "password: <your password>", "API_KEY=your-api-key-here",
    "token = request.headers['X-Token']", "const token = await getToken(user.id)",
    "apiKey: process.env.OPENAI_API_KEY2", "secret: ${{ secrets.GITHUB_TOKEN }}",
    "password: {{ vault_password_2 }}", "DB_PASSWORD=${DB_PASSWORD:-postgres}",
    "secret_arn = arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db-AbC12d",
    "password_file=/run/secrets/db_password_1", "token_url: https://auth.example.net/oauth2/token",
    "\"next_page_token\": \"Cg0I2Zm9vYmFyMTIzNDU2\"", "max_tokens=4096", "total_tokens: 1234567",
    "eos_token: \"<|endoftext|>\"", "tokenizer = AutoTokenizer.from_pretrained('gpt2')",
    "e.token||t.apiKey2&&n.secretKey3", "function(t){return t.token=e.accessToken1,t}",
    "var n=t.password?r.hash2(t.password):null", "primary_key=True, foreign_key='users.id2'",
    "cache_key = f'user:{user_id}:v2'", "sort_key: created_at_2", "s3_key=uploads/2026/img1.png",
    "public_key: MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE", "the password must have 12 characters",
    "the password is required", "The password is base64-encoded", "password is too short",
    "Enter your password:", "password reset email sent", "Bearer token authentication",
    "Authorization: Bearer <token>", "Authorization: Bearer $API_TOKEN", "sk-learn==1.5.0",
    "sk_live_xxxxxxxxxxxxxxxxxxxxxxxx", "AKIAIOSFODNN7EXAMPLE",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "ghp_XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX",
    "postgresql://user:password@localhost/db", "redis://localhost:6379/0",
    "postgresql://app@db:5432/x", "https://example.org:8443/a@b", "git@github.com:owner/name.git",
    "mysql -u root -p x < dump.sql", "curl -u $USER:$PASS https://x.net", "docker login -u me",
    "--token-file /etc/token1", "--password-stdin", "kubectl get secret db-password-1 -o yaml",
    "secretKeyRef:\n  name: db-secret-1\n  key: password", "secretName: tls-secret-2026",
    "imagePullSecrets:\n- name: regcred1", "def test_password_reset_v2():", "class TokenV2(Base):",
    "PASSWORD_HASHERS = ['django.contrib.auth.hashers.Argon2PasswordHasher']",
    "AUTH_USER_MODEL=accounts.User2", "cookie: SameSite=Lax", "Set-Cookie header is missing",
    "const cookie2 = document.cookie", "session_id=None", "jwt=decode(x)", "sig=None",
    "version 1.2.3-beta.4+build.5678", "2026-11-28T21:35:00.000Z", "192.168.10.24:8080",
    "0x7fff5fbff8c0", "chrome/126.0.6478.127", "user_2NNEqL2nrIRdJ194ndJqAHwEfxC",
    "msg_01H" + letters(22), "toolu_01" + letters(22), "call_" + letters(24), "req_" + letters(24),
    "ses_" + letters(26), "cus_" + letters(14), "price_1" + letters(23), "pk_" + "live_" + "x" * 24,
    "i18n.t('login.password2.label')", "t('errors.token_expired_2')", "aria-label=\"Password 2\"",
    "<input type=\"password\" name=\"password2\">", "password: z.string().min(8)",
    "password: yup.string().required()", "password?: string | undefined",
    "token: Optional[str] = None",
    "pass", "passes: 12", "bypass_2fa=false", "compass-core@2.3.4", "keyframes spin2 { }",
    "key: value2", "keyboard_layout=us2", "monkey=banana12345", "secretary: Anna2",
    "npm_config_registry=https://registry.example.net/", "hf_hub_download(repo_id='x/y2')",
    "token 9fceb02d0ae598e95dc970b74767f19372d61af8", "the token is getAccessTokenSilently2",
    f"cache token {uuid()}", "token: parseTokenFromRequestHeaderV2(request)",
    "'token', 'access_token_created_2026_11'", "| token | 2026-11-28T21:35:00 | 12,345 |",
    "see the key in docs/Reference/ApiKeys2/Rotation1.md",
    "eyJ is the beginning", "SG. Nr. 12", "AC/DC 1980", "key-value-pairs-2026",
]  # fmt: skip
