"""Each request comes from an address of its own, as through a proxy: wrong tokens are limited for each address."""

from itertools import count

import schemathesis

numbers = count()


@schemathesis.hook
def before_call(context, case, kwargs):
    number = next(numbers)
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    if case.headers is None:
        case.headers = {}
    case.headers["X-Forwarded-For"] = address
