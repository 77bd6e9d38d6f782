#!/usr/bin/env python3
"""Somebody who is no part of the job, on a rank's listener: stranger.py KIND ADDRESS PORT SECONDS.

Ends with 0 when it connected, no byte beyond a handshake's challenge was ever handed out, and whoever said something wrong was hung up on (not
always at once: a rank that computes looks at its listener later). Wire layout: src/mplite/wire.h.
"""
import os
import random
import socket
import struct
import sys
import time

KIND, ADDRESS, PORT, SECONDS = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
END = time.monotonic() + SECONDS
HELLO_BYTES = 64
random.seed(7)


def connect():
    return socket.create_connection((ADDRESS, PORT), timeout=5)


def hello(kind, sender, target, nonce, mac=bytes(32)):
    return struct.pack("<IBBHII", 0x4C484D31, 1, kind, 0, sender, target) + nonce + mac


def heard(link, seconds):
    """What the other side says until it closes or SECONDS are over, and whether it closed."""
    link.settimeout(0.2)
    said = b""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            data = link.recv(65536)
            if not data:
                return said, True
            said += data
        except socket.timeout:
            continue
        except OSError:
            return said, True
    return said, False


def main():
    connected = hung_up = 0
    wrong = []
    last = None
    while time.monotonic() < END:
        try:
            if KIND == "scan":
                for _ in range(20):
                    connect().close()
                    connected += 1
                time.sleep(0.2)
                continue
            if KIND == "crowd":
                crowd = []
                try:
                    for _ in range(200):
                        crowd.append(connect())
                except OSError:
                    pass
                connected += len(crowd)
                time.sleep(max(0.0, END - time.monotonic()))
                for link in crowd:
                    link.close()
                break
            link = connect()
            connected += 1
            said, closed = b"", True
            if KIND == "garbage":
                link.sendall(random.randbytes(65536))
                said, closed = heard(link, 3)
            elif KIND == "slow":
                # never more than a part of a true first message
                message = hello(1, 2, 0, os.urandom(16))
                try:
                    for byte in message[:-1]:
                        link.sendall(bytes([byte]))
                        time.sleep(0.2)
                        if time.monotonic() > END:
                            break
                except OSError:
                    pass
                link.close()
            elif KIND in ("forged", "replay"):
                target = 0 if ADDRESS.endswith(".1") else 1
                nonce = os.urandom(16)
                link.sendall(hello(1, 2, target, nonce))
                said, closed = heard(link, 0.5)
                if not closed:
                    if KIND == "replay" and len(said) >= HELLO_BYTES:
                        # its own proof of the secret, sent back to it as ours
                        link.sendall(hello(3, 2, target, said[16:32], said[32:64]))
                    else:
                        link.sendall(hello(3, 2, target, nonce, os.urandom(32)))
                    more, closed = heard(link, 3)
                    said += more
            if len(said) > HELLO_BYTES:
                wrong.append(f"{len(said)} bytes were handed out")
            hung_up += closed
            link.close()
            time.sleep(0.1)
        except OSError as problem:
            # a full backlog or a reset in the middle is a way of being turned away
            last = problem
            time.sleep(0.2)
    if KIND in ("garbage", "forged", "replay") and hung_up == 0:
        wrong.append("was never hung up on")
    for text in sorted(set(wrong)):
        print(f"stranger {KIND}: {text}")
    print(f"stranger {KIND}: {connected} connections to {ADDRESS}:{PORT}, hung up on {hung_up} times, last trouble: {last}")
    return 1 if wrong or connected == 0 else 0


sys.exit(main())
