"""A small OpenID Connect provider on loopback, which can be told to misbehave."""

import base64
import hashlib
import hmac
import json
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "freezeframe", "a secret of the client"


class Provider:
    """``claims`` goes into the next tokens in place of what is right; ``sign`` makes the token of claims."""

    def __init__(self):
        self.key = RSAKey.generate_key(2048, parameters={"kid": "one"})
        self.codes, self.claims, self.sign = {}, {}, self.signed
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                provider.get(self)

            def do_POST(self):
                provider.post(self)

            def log_message(self, *_):
                """Nothing is printed."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def signed(self, claims):
        return jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key)

    def signed_by_another(self, claims):
        return jwt.encode({"alg": "RS256", "kid": "one"}, claims, RSAKey.generate_key(2048))

    def signed_by_nobody(self, claims):
        return f"{_unsigned('none', claims)}."

    def signed_with_the_public_key(self, claims):
        text = _unsigned("HS256", claims)
        signature = hmac.digest(self.key.as_pem(private=False), text.encode(), "sha256")
        return f"{text}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"

    def get(self, request):
        parts = urlsplit(request.path)
        if parts.path == "/.well-known/openid-configuration":
            place = self.issuer
            names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
            _answer(
                request, 200, {"issuer": place, **{name: f"{place}/{item}" for name, item in names.items()}}
            )
        elif parts.path == "/keys":
            _answer(request, 200, {"keys": [self.key.as_dict(private=False)]})
        elif parts.path == "/authorize":  # whoever comes is signed in at once
            wanted = {name: values[0] for name, values in parse_qs(parts.query).items()}
            code = uuid.uuid4().hex
            self.codes[code] = wanted
            back = urlencode({"code": code, "state": wanted["state"]})
            request.send_response(302)
            request.send_header("Location", f"{wanted['redirect_uri']}?{back}")
            request.end_headers()

    def post(self, request):
        form = request.rfile.read(int(request.headers["content-length"])).decode()
        given = {name: values[0] for name, values in parse_qs(form).items()}
        wanted = self.codes.pop(given.get("code"), None)
        secret = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(given["code_verifier"].encode()).digest())
        is_good = (
            wanted is not None
            and request.headers["authorization"] == f"Basic {secret}"
            and challenge.decode().rstrip("=") == wanted["code_challenge"]
            and given["redirect_uri"] == wanted["redirect_uri"]
        )
        if not is_good:
            _answer(request, 400, {"error": "invalid_grant"})
            return
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": "1",
            "aud": CLIENT,
            "exp": now + 300,
            "iat": now,
            "nonce": wanted["nonce"],
            "email": "ada@example.org",
            "roles": ["staff"],
            **self.claims,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        _answer(request, 200, {"id_token": self.sign(claims), "access_token": "x", "token_type": "Bearer"})


def _unsigned(algorithm, claims):
    parts = [json.dumps(item).encode() for item in ({"alg": algorithm, "kid": "one"}, claims)]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def _answer(request, status, document):
    request.send_response(status)
    request.send_header("Content-Type", "application/json")
    request.end_headers()
    request.wfile.write(json.dumps(document).encode())
