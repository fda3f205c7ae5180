import hashlib
import hmac
import re
import time


def is_genuine(raw_body: bytes, header: str | None, secret: str, now: float | None = None) -> bool:
    parts = [part.partition("=") for part in (header or "").split(",")]
    times = [value for name, _, value in parts if name == "t" and value]
    codes = [value for name, _, value in parts if name == "v1" and value]
    if not secret or len(times) != 1 or not re.fullmatch(r"[0-9]{1,15}", times[0]) or not codes:
        return False
    if abs((time.time() if now is None else now) - int(times[0])) > 300:
        return False
    message = times[0].encode() + b"." + raw_body
    expected = hmac.new(secret.encode(), message, hashlib.sha256).hexdigest().encode()
    return any([hmac.compare_digest(code.encode(), expected) for code in codes])
