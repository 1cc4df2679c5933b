"""
Each request comes from an address of its own, as through a proxy: wrong tokens are limited for each address. None has more than 16 KiB of
address and headers, which is a 431 for every operation, before the operation is known (recorder/http/server.test.ts).
"""

from itertools import count
from urllib.parse import urlencode

import schemathesis

numbers = count()


@schemathesis.hook
def before_call(context, case, kwargs):
    number = next(numbers)
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    if case.headers is None:
        case.headers = {}
    case.headers["X-Forwarded-For"] = address


@schemathesis.hook
def filter_query(context, query):
    return len(urlencode(query or {}, doseq=True)) < 12_000
