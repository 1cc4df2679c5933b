#!/usr/bin/python3
"""Demo cameras: real RTSP servers (GStreamer's) with moving pictures, a burnt-in clock and sound.

Prints `ready NAME URL` for each camera (the URL without a login) and serves until SIGTERM, SIGINT, or, with
--with-parent, until its standard input closes. SIGUSR1 prints `sessions N`: RTSP sessions open on all cameras.

Needs the system's Python with gi: a Python from elsewhere usually lacks it, hence the first line.
"""

import argparse
import json
import os
import signal
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

# What the three kinds of demo camera send. --cameras N repeats them.
KINDS = [
    {"name": "gate", "video": "h264", "audio": "aac", "pattern": "ball background-color=0xff1d3b53"},
    {"name": "yard", "video": "h265", "audio": "none", "pattern": "smpte"},
    {"name": "hall", "video": "h264-b", "audio": "pcmu", "pattern": "pinwheel foreground-color=0xff7a8b99"},
]

ENCODERS = {
    "h264": "x264enc tune=zerolatency speed-preset=ultrafast threads=1 bitrate={kbps} key-int-max={gop}"
    " ! video/x-h264,profile=constrained-baseline ! h264parse ! rtph264pay name=pay{n} pt=96 config-interval={sets}",
    # B-frames: pictures are sent in another order than they are shown.
    "h264-b": "x264enc speed-preset=ultrafast threads=1 bitrate={kbps} key-int-max={gop} bframes=2 b-adapt=false"
    " rc-lookahead=0 sync-lookahead=0 sliced-threads=false ! video/x-h264,profile=main"
    " ! h264parse ! rtph264pay name=pay{n} pt=96 config-interval={sets}",
    "h265": "x265enc tune=zerolatency speed-preset=ultrafast bitrate={kbps} key-int-max={gop} log-level=error"
    " option-string=pools=1:frame-threads=1:bframes=0 ! h265parse ! rtph265pay name=pay{n} pt=96 config-interval={sets}",
    "mjpeg": "jpegenc quality=60 ! rtpjpegpay name=pay{n} pt=26",
    "mjpeg-422": "videoconvert ! video/x-raw,format=Y42B ! jpegenc quality=60 ! rtpjpegpay name=pay{n} pt=26",
}

AUDIO = {
    "aac": "audio/x-raw,rate=48000,channels=2 ! voaacenc bitrate=64000 ! aacparse ! rtpmp4gpay name=pay{n} pt=97",
    "pcmu": "audio/x-raw,rate=8000,channels=1 ! mulawenc ! rtppcmupay name=pay{n}",
    "pcma": "audio/x-raw,rate=8000,channels=1 ! alawenc ! rtppcmapay name=pay{n}",
    "opus": "audio/x-raw,rate=48000,channels=2 ! opusenc ! rtpopuspay name=pay{n} pt=98",
    "l16": "audio/x-raw,rate=44100,channels=2 ! audioconvert ! audio/x-raw,format=S16BE ! rtpL16pay name=pay{n} pt=98",
    "mp2": "audio/x-raw,rate=48000,channels=2 ! twolamemp2enc ! mpegaudioparse ! rtpmpapay name=pay{n}",
    "mp3": "audio/x-raw,rate=16000,channels=1 ! lamemp3enc ! mpegaudioparse ! rtpmpapay name=pay{n}",
}


def pipeline(camera):
    """The camera as a GStreamer launch line."""
    fps = camera.get("fps", 25)
    height = camera.get("height", 360)
    picture = (
        f"videotestsrc is-live=true pattern={camera.get('pattern', 'ball')} horizontal-speed=2"
        f" ! video/x-raw,format=I420,width={camera.get('width', 640)},height={height},framerate={fps}/1"
        f" ! clockoverlay text={camera['name']} time-format=\"%Y-%m-%d %H:%M:%S\" valignment=bottom"
        " halignment=left shaded-background=true font-desc=\"DejaVu Sans Mono 14\""
        " ! timeoverlay valignment=bottom halignment=right shaded-background=true font-desc=\"DejaVu Sans Mono 14\""
    )
    encoder = ENCODERS[camera["video"]].format(
        n=0, kbps=camera.get("kbps", 500), gop=camera.get("gop", 2 * fps), sets=camera.get("sets", 1)
    )
    line = f"{picture} ! {encoder}"
    if camera["audio"] != "none":
        # One tick a second, so that eye and ear can compare.
        line += (
            " audiotestsrc is-live=true wave=ticks volume=0.3 ! audioconvert ! audioresample ! "
            + AUDIO[camera["audio"]].format(n=1)
        )
    return f"( {line} )"


def protect(server, factory, camera):
    """Demands a login: `auth` is `digest` or `basic`."""
    auth = GstRtspServer.RTSPAuth()
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "viewer")
    if camera["auth"] == "digest":
        auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
        auth.add_digest(camera["user"], camera["password"], token)
    else:
        auth.set_supported_methods(GstRtsp.RTSPAuthMethod.BASIC)
        auth.add_basic(GstRtspServer.RTSPAuth.make_basic(camera["user"], camera["password"]), token)
    permissions = GstRtspServer.RTSPPermissions()
    permissions.add_permission_for_role("viewer", "media.factory.access", True)
    permissions.add_permission_for_role("viewer", "media.factory.construct", True)
    factory.set_permissions(permissions)
    server.set_auth(auth)


def serve(camera, address, port):
    """Starts one camera on a port of its own; returns its server and its URL."""
    server = GstRtspServer.RTSPServer()
    server.set_address(address)
    server.set_service(str(port))
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(pipeline(camera))
    factory.set_shared(True)  # encode once, however many watch
    if camera.get("auth", "none") != "none":
        protect(server, factory, camera)
    server.get_mount_points().add_factory("/" + camera["name"], factory)
    if server.attach(None) == 0:
        sys.exit(f"cannot listen on {address}:{port}: is the port in use?")
    return server, f"rtsp://{address}:{server.get_bound_port()}/{camera['name']}"


def chosen_cameras(arguments):
    if arguments.config:
        if arguments.config == "-":
            return json.loads(sys.stdin.readline())  # one line: standard input stays open, see --with-parent
        with open(arguments.config, encoding="utf-8") as file:
            return json.load(file)
    cameras = []
    for index in range(arguments.cameras):
        camera = dict(KINDS[index % len(KINDS)])
        if index >= len(KINDS):
            camera["name"] += f"-{index // len(KINDS) + 1}"
        if index == 0 and arguments.login:
            user, _, password = arguments.login.partition(":")
            camera.update(auth="digest", user=user, password=password)
        cameras.append(camera)
    return cameras


def main():
    parser = argparse.ArgumentParser(description="Real RTSP cameras with moving pictures, for demos and tests.")
    parser.add_argument("--cameras", type=int, default=3, help="how many (default 3)")
    parser.add_argument("--address", default="127.0.0.1", help="where to listen (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8554, help="first port, one a camera; 0: any free (default 8554)")
    parser.add_argument("--login", metavar="USER:PASSWORD", help="the first camera demands it, by digest")
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="JSON list of cameras instead: name, video (h264, h264-b, h265, mjpeg, mjpeg-422), audio (aac, pcmu, pcma, opus,"
        " l16, mp2, mp3, none), pattern, width, height, fps, kbps, gop, auth (digest, basic), user, password, port; -: a"
        " line of standard input",
    )
    parser.add_argument("--with-parent", action="store_true", help="end when standard input closes")
    arguments = parser.parse_args()

    Gst.init(None)
    for element in ("clockoverlay", "x264enc", "x265enc", "voaacenc", "rtph264pay"):
        if Gst.ElementFactory.find(element) is None:
            sys.exit(f"GStreamer lacks {element}: run hack/setup cameras")
    loop = GLib.MainLoop()
    servers = []
    for index, camera in enumerate(chosen_cameras(arguments)):
        port = camera.get("port", arguments.port + index if arguments.port else 0)
        server, url = serve(camera, arguments.address, port)
        servers.append(server)
        print("ready", camera["name"], url, flush=True)

    def report():
        print("sessions", sum(s.get_session_pool().get_n_sessions() for s in servers), flush=True)
        return True

    def expire():
        for server in servers:
            server.get_session_pool().cleanup()
        return True

    GLib.timeout_add_seconds(2, expire)
    GLib.unix_signal_add(GLib.PRIORITY_HIGH, signal.SIGUSR1, report)
    for number in (signal.SIGTERM, signal.SIGINT):
        GLib.unix_signal_add(GLib.PRIORITY_HIGH, number, loop.quit)
    if arguments.with_parent:
        GLib.io_add_watch(sys.stdin, GLib.PRIORITY_HIGH, GLib.IOCondition.HUP, lambda *_: loop.quit())
    loop.run()
    # Pipelines that still run can hang an orderly end; there is nothing to save.
    os._exit(0)


if __name__ == "__main__":
    main()
