#!/usr/bin/env python3
"""Links between cameras and a recorder, emulated: they lose, delay, reorder and hold back packets as told.

usage: links.py PID SEED RECORDER CAMERA...

There is a TUN device in the network namespace of this process, with the address RECORDER, and one in that of the process
PID, with the addresses CAMERA...; what goes in at one comes out at the other. Each line of standard input is a JSON
object of cameras' addresses with what their links do from now on:

  loss     share of packets from the camera that vanish
  jitterMs packets from the camera are later by up to so much, each by itself; they overtake each other
  kbit     thousand bits a second that pass from the camera; more waits up to 300 ms, then vanishes
  down     nothing passes either way

Prints "ready" when the devices are there. Ends with its standard input.
"""

import ctypes
import fcntl
import heapq
import json
import os
import random
import select
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000
CLONE_NEWNET = 0x40000000
DEVICE = "links0"
DELAY_S = 0.005
QUEUE_S = 0.3
PACKETS_AT_ONCE = 64

libc = ctypes.CDLL(None, use_errno=True)


def enter(namespace):
    if libc.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def device(namespace, addresses):
    """A TUN device in the namespace; the process stays where it was."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    enter(namespace)
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    commands = [f"addr add {address}/24 dev {DEVICE}" for address in addresses]
    commands += [f"link set {DEVICE} mtu 1500 txqueuelen 5000 up", "link set lo up"]
    subprocess.run(["ip", "-batch", "-"], input="\n".join(commands), text=True, check=True)
    enter(home)
    os.close(home)
    return tun


class Link:
    def __init__(self):
        self.does = {}
        # When the last packet is through what the link lets pass.
        self.free_at = 0.0
        # When the last packet comes out, where none overtakes another.
        self.last_at = 0.0

    def due(self, now, size, from_camera):
        """When a packet comes out; None: never."""
        does = self.does
        if does.get("down"):
            return None
        if not from_camera:
            return now + DELAY_S
        if random.random() < does.get("loss", 0):
            return None
        at = now
        kbit = does.get("kbit")
        if kbit:
            self.free_at = max(self.free_at, now)
            if self.free_at - now > QUEUE_S:
                return None
            self.free_at += size * 8 / 1000 / kbit
            at = self.free_at
        jitter_ms = does.get("jitterMs", 0)
        if jitter_ms:
            return at + DELAY_S + random.random() * jitter_ms / 1000
        self.last_at = max(self.last_at, at + DELAY_S)
        return self.last_at


def address_in(packet, offset):
    return ".".join(str(byte) for byte in packet[offset : offset + 4])


def main():
    pid, seed, recorder, *cameras = sys.argv[1:]
    random.seed(int(seed))
    here = device(os.open("/proc/self/ns/net", os.O_RDONLY), [recorder])
    there = device(os.open(f"/proc/{pid}/ns/net", os.O_RDONLY), cameras)
    links = {camera: Link() for camera in cameras}
    print("ready", flush=True)
    waiting, count, commands = [], 0, b""
    while True:
        now = time.monotonic()
        timeout = max(0.0, waiting[0][0] - now) if waiting else None
        readable, _, _ = select.select([here, there, sys.stdin], [], [], timeout)
        if sys.stdin in readable:
            text = os.read(sys.stdin.fileno(), 65536)
            if not text:
                return
            *lines, commands = (commands + text).split(b"\n")
            for line in lines:
                for camera, does in json.loads(line).items():
                    links[camera].does = does
        for tun in (here, there):
            if tun not in readable:
                continue
            for _ in range(PACKETS_AT_ONCE):
                try:
                    packet = os.read(tun, 65536)
                except BlockingIOError:
                    break
                # IPv4: source at 12, destination at 16.
                link = links.get(address_in(packet, 12 if tun == there else 16))
                if packet[0] >> 4 != 4 or link is None:
                    continue
                due = link.due(time.monotonic(), len(packet), tun == there)
                if due is not None:
                    count += 1
                    heapq.heappush(waiting, (due, count, here if tun == there else there, packet))
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, _, tun, packet = heapq.heappop(waiting)
            try:
                os.write(tun, packet)
            except OSError:
                pass  # The device's queue is full, as it may be.


main()
