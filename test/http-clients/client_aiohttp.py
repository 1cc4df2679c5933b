"""aiohttp, which Home Assistant uses."""

import asyncio
import sys

import aiohttp


async def main(arguments):
    async with aiohttp.ClientSession() as session:
        for what, url in zip(arguments[::2], arguments[1::2]):
            if what == "WEBSOCKET":
                async with session.ws_connect(url) as socket:
                    print(what, (await socket.receive_bytes())[4:8].decode())
                continue
            method = "POST" if what == "POST" else "GET"
            body = {"json": {"id": "gate"}} if what == "POST" else {}
            headers = {"range": "bytes=4-7"} if what == "RANGE" else {}
            async with session.request(method, url, headers=headers, **body) as answer:
                text = (await answer.read())[:4].decode(errors="replace")
                print(what, answer.status, *([text] if what == "RANGE" else []))


asyncio.run(main(sys.argv[1:]))
