"""requests, which many scripts use."""

import sys

import requests

arguments = sys.argv[1:]
session = requests.Session()
for what, url in zip(arguments[::2], arguments[1::2]):
    if what == "POST":
        answer = session.post(url, json={"id": "gate"})
    else:
        answer = session.get(url, headers={"range": "bytes=4-7"} if what == "RANGE" else {})
    print(what, answer.status_code, *([answer.text] if what == "RANGE" else []))
