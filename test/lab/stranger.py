#!/usr/bin/env python3
"""Somebody who is no part of the job, on a rank's listener: stranger.py KIND ADDRESS PORT SECONDS [CONNECTIONS].

Ends with 0 when it connected, no byte beyond a handshake's challenge was ever handed out, whoever said something wrong was hung up on (not always at
once: a rank that computes looks at its listener later), and whoever said a right hello was challenged first. With CONNECTIONS it makes so many and
prints the port that each came from, by which the rank's log line can be found.

stranger.py layout connects to nobody: it ends with 0 if the source's Hello is laid out as this script writes it.
"""
import os
import random
import re
import socket
import struct
import sys
import time

KIND, ADDRESS, PORT, SECONDS = ("layout", "", 0, 0.0) if sys.argv[1:] == ["layout"] else (sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
CONNECTIONS = int(sys.argv[5]) if len(sys.argv) > 5 else None
END = time.monotonic() + SECONDS
PATIENCE = 8    # seconds for an answer
POSITION_BYTES = struct.calcsize("<QQ")  # StreamPosition, zero in a kHello
random.seed(7)


def wire():
    """The handshake's constants, from the source: a stranger with another version would be turned away before it is challenged."""
    path = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "src", "mplite", "net")
    source = ""
    for name in "frame.h", "hello.h":
        with open(os.path.join(path, name), encoding="utf-8") as text:
            source += text.read()
    found = {}
    for name, pattern in (("version", r"\bkWireVersion = (\w+);"), ("magic", r"\bkHelloMagic = (\w+);"), ("bytes", r"\bkHelloBytes = (\w+);"), ("nonce", r"\bkNonceBytes = (\w+);"),
                          ("mac", r"\bkMacBytes = (\w+);"), ("hello", r"\bkHello = (\w+),"), ("challenge", r"\bkChallenge = (\w+),"), ("proof", r"\bkProof = (\w+),")):
        values = re.findall(pattern, source)
        if len(values) != 1:
            sys.exit(f"stranger {KIND}: {path} does not tell {name} by {pattern}, or more than once: {values}")
        found[name] = int(values[0], 0)
    if struct.calcsize("<IBBHII") + found["nonce"] + found["mac"] + POSITION_BYTES != found["bytes"]:
        sys.exit(f"stranger {KIND}: {path}: a Hello has {found['bytes']} bytes, and another layout than this script's")
    return found


WIRE = wire()
NONCE_AT = struct.calcsize("<IBBHII")
MAC_AT = NONCE_AT + WIRE["nonce"]
POSITION_AT = MAC_AT + WIRE["mac"]
# The rank that it claims to be, and the one whose listener this is: rank I is alone on host I.
CLAIMED, TARGET = 2, 0 if ADDRESS.endswith(".1") else 1


def connect():
    link = socket.create_connection((ADDRESS, PORT), timeout=5)
    if CONNECTIONS is not None:
        print(f"stranger {KIND}: from port {link.getsockname()[1]}", flush=True)
    return link


def hello(kind, target, nonce, mac=bytes(WIRE["mac"]), version=WIRE["version"]):
    return struct.pack("<IBBHII", WIRE["magic"], version, kind, 0, CLAIMED, target) + nonce + mac + bytes(POSITION_BYTES)


def heard(link, seconds, enough=None):
    """What the other side says until it closes, `enough` bytes are there or SECONDS are over, and whether it closed."""
    link.settimeout(0.2)
    said = b""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            data = link.recv(65536)
            if not data:
                return said, True
            said += data
            if enough is not None and len(said) >= enough:
                return said, False
        except socket.timeout:
            continue
        except OSError:
            return said, True
    return said, False


def is_challenge(said):
    return len(said) == WIRE["bytes"] and struct.unpack("<IBBHII", said[:NONCE_AT])[:3] == (WIRE["magic"], WIRE["version"], WIRE["challenge"]) \
        and said[MAC_AT:POSITION_AT] != bytes(WIRE["mac"])


def main():
    connected = hung_up = challenged = dropped_after = 0
    wrong = []
    last = None
    while time.monotonic() < END and (CONNECTIONS is None or connected < CONNECTIONS):
        try:
            if KIND == "scan":
                for _ in range(20 if CONNECTIONS is None else CONNECTIONS):
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
            nonce = os.urandom(WIRE["nonce"])
            if KIND == "garbage":
                try:
                    link.sendall(random.randbytes(65536))
                    said, closed = heard(link, 3 if CONNECTIONS is None else PATIENCE)
                except (ConnectionResetError, BrokenPipeError):
                    pass  # hung up on in the middle of it
            elif KIND == "slow":
                # never more than a part of a true first message
                message = hello(WIRE["hello"], TARGET, nonce)
                try:
                    for byte in message[:-1]:
                        link.sendall(bytes([byte]))
                        time.sleep(0.2)
                        if time.monotonic() > END:
                            break
                except OSError:
                    pass
                link.close()
            elif KIND == "outdated":
                link.sendall(hello(WIRE["hello"], TARGET, nonce, version=WIRE["version"] - 1))
                said, closed = heard(link, PATIENCE)
            elif KIND == "astray":
                link.sendall(hello(WIRE["hello"], TARGET + 1, nonce))
                said, closed = heard(link, PATIENCE)
            elif KIND in ("forged", "replay"):
                link.sendall(hello(WIRE["hello"], TARGET, nonce))
                said, closed = heard(link, PATIENCE if CONNECTIONS is not None else 3, WIRE["bytes"])
                if not closed and is_challenge(said):
                    challenged += 1
                    if KIND == "replay":
                        # its own proof of the secret, sent back to it as ours
                        link.sendall(hello(WIRE["proof"], TARGET, said[NONCE_AT:MAC_AT], said[MAC_AT:POSITION_AT]))
                    else:
                        link.sendall(hello(WIRE["proof"], TARGET, nonce, os.urandom(WIRE["mac"])))
                    more, closed = heard(link, PATIENCE)
                    said += more
                    dropped_after += closed
            else:
                sys.exit(f"stranger {KIND}: no such kind")
            if len(said) > (WIRE["bytes"] if KIND in ("forged", "replay") else 0):
                wrong.append(f"{len(said)} bytes were handed out")
            hung_up += closed
            link.close()
            time.sleep(0.1)
        except OSError as problem:
            # a full backlog or a reset in the middle is a way of being turned away
            last = problem
            time.sleep(0.2)
    if KIND in ("garbage", "outdated", "astray", "forged", "replay") and hung_up == 0:
        wrong.append("was never hung up on")
    if KIND in ("forged", "replay"):
        if challenged == 0:
            wrong.append("was never challenged")
        elif dropped_after == 0:
            wrong.append("was never hung up on after its proof")
    for text in sorted(set(wrong)):
        print(f"stranger {KIND}: {text}")
    print(f"stranger {KIND}: {connected} connections to {ADDRESS}:{PORT}, challenged {challenged} times, hung up on {hung_up} times, last trouble: {last}")
    return 1 if wrong or connected == 0 else 0


if __name__ == "__main__":
    sys.exit(0 if KIND == "layout" else main())
