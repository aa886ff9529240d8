"""``Retry-After`` (RFC 9110, section 10.2.3): seconds, or a date in one of the three forms of HTTP."""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping

_SECONDS = re.compile(r"[0-9]{1,9}")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH = "|".join(_MONTHS)
_TIME = "(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_DATES = (
    re.compile(f"[A-Z][a-z]{{2}}, (?P<day>[0-9]{{2}}) (?P<month>{_MONTH}) (?P<year>[0-9]{{4}}) {_TIME} GMT"),
    re.compile(f"[A-Z][a-z]{{5,8}}, (?P<day>[0-9]{{2}})-(?P<month>{_MONTH})-(?P<year>[0-9]{{2}}) {_TIME} GMT"),
    re.compile(f"[A-Z][a-z]{{2}} (?P<month>{_MONTH}) (?P<day>[0-9 ][0-9]) {_TIME} (?P<year>[0-9]{{4}})"),
)


def http_date(text: str) -> float | None:
    """Return the seconds since the epoch; None if the text is not a date of HTTP."""
    found = next((match for form in _DATES if (match := form.fullmatch(text)) is not None), None)
    if found is None:
        return None
    year, day, hour, minute, second = (int(found[part]) for part in ("year", "day", "hour", "minute", "second"))
    if not 1 <= day <= 31 or hour > 23 or minute > 59 or second > 60:
        return None
    # RFC 9110, section 5.6.7: a year of two digits is the nearest one.
    full_year = year if len(found["year"]) == 4 else year + (2000 if year < 70 else 1900)
    return calendar.timegm((full_year, _MONTHS.index(found["month"]) + 1, day, hour, minute, second))


def retry_after_in(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds to wait. A date is compared with the server's ``Date``, or with ``now`` without one."""
    text = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    until = http_date(text)
    if until is None:
        return None
    sent = http_date(headers.get("date", "").strip())
    return max(0.0, until - (now if sent is None else sent))
