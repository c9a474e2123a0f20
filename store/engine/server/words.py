"""Errors of PostgreSQL and its driver in words."""

from __future__ import annotations

import os
import re
import ssl

_WORDS = {
    "28P01": "refuses the login",
    "28000": "refuses the login",
    "3D000": "cannot be opened",
    "57P03": "is starting up or shutting down",
    "57P01": "closed the connection",
    "57P02": "closed the connection",
    "42501": "may not be read by this user",
    "57014": "took too long to answer",
    "55P03": "is locked by another program",
    "53300": "takes no more connections",
    "53100": "has no space left; free some space there and try again",
    "25P03": "closed the idle connection",
    "57P05": "closed the idle connection",
}
"""By SQLSTATE (PostgreSQL's manual, appendix A)."""
OF_THE_DRIVER = ("ConnectionDoesNotExistError", "InterfaceError", "InternalClientError")
"""Errors of the driver's own about a connection that is closed, or is in no state to be used."""
_OF_ANOTHER_NAME = (62, 64)
"""OpenSSL's ``X509_V_ERR_HOSTNAME_MISMATCH`` and ``X509_V_ERR_IP_ADDRESS_MISMATCH``."""
_OF_NO_TRUST = (9, 10, 11, 12, 13, 14, 15, 16, 23)
"""Of ``X509_V_ERR``: the dates of a certificate, or of the list of those that were revoked, and
that it is one of these."""
_NUMBER = re.compile(r"\[Errno (\d+)\]")


def reason(error: BaseException) -> str:
    """Return one line; the server's own words are part of it where they help."""
    state = getattr(error, "sqlstate", None)
    said = _first_line(str(error))
    if is_statement_mode(error):
        return ("is behind a pooler in statement mode, where nothing can be changed;"
                " use its transaction or session mode")
    if isinstance(state, str):
        if state.startswith("08"):
            return f"closed the connection: {said}"
        return f"{_WORDS.get(state, 'cannot be read')}: {said}"
    if isinstance(error, TimeoutError):
        return "does not answer"
    if type(error).__name__ in OF_THE_DRIVER:
        # The driver's own message is about its internals, such as "cannot switch to state 12".
        return "closed the connection in the middle of a call"
    if isinstance(error, ssl.SSLError):
        return _of_tls(error)
    if isinstance(error, ConnectionError) and "SSL" in said:
        return "does not offer TLS, which sslmode asks for; sslmode=prefer does without"
    if type(error).__name__ == "TargetServerAttributeNotMatched":
        return "has no server of the kind that target_session_attrs asks for"
    if isinstance(error, OSError):
        return f"cannot be reached: {_of_system(error)}"
    return f"cannot be read: {said or type(error).__name__}"


def is_statement_mode(error: BaseException) -> bool:
    """Return whether a pooler refused a transaction, as it gives each statement a connection."""
    return "statement pooling mode" in str(error)


def _of_tls(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        said = error.verify_message.strip().rstrip(".")
        if error.verify_code in _OF_ANOTHER_NAME:
            return (
                f"cannot be reached: its TLS certificate is of another name ({said}); connect by a"
                " name that it has, and say with hostaddr=ADDRESS where that is")
        way = "" if error.verify_code in _OF_NO_TRUST else (
            "; sslrootcert names the authority to trust")
        return f"cannot be reached: its TLS certificate cannot be verified ({said}){way}"
    if "PEM lib" in str(error):
        # Its own words are those of no file at all.
        return (
            "cannot be reached: TLS failed (the files of sslcert and sslkey cannot be used;"
            " sslpassword is the password of a key that has one)")
    said = (getattr(error, "reason", None) or str(error)).replace("_", " ").lower()
    return f"cannot be reached: TLS failed ({said})"


def is_of_password(error: BaseException) -> bool:
    """Return whether the server wanted another password, or one at all."""
    return getattr(error, "sqlstate", None) == "28P01"


def _of_system(error: OSError) -> str:
    found = _NUMBER.search(str(error))
    number = error.errno if error.errno is not None else int(found[1]) if found else None
    if number is not None and number > 0:
        return os.strerror(number)
    return _first_line(error.strerror or str(error)) or type(error).__name__


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


MISSING_DRIVER = (
    "cannot be read: PostgreSQL needs the driver asyncpg. Install Backscroll with the extra"
    " postgres, for example with `pip install 'backscroll[postgres]'`"
)
