#!/usr/bin/env python3
"""True handshakes, said again by a stranger: recorded.py record FILE | replay FILE.

record   writes a line for each connection between ranks whose beginning is seen on any interface of
         this network namespace (the switch of a lab): the address and port that was called, and the
         first messages of the caller, in hexadecimal. Until it is ended.
replay   says each of them again where it was said, once message by message and once all at once.
         Ends with 0 if a challenge was all that ever came back, and everybody hung up."""
import os
import socket
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "lab"))
sys.argv, ARGUMENTS = [sys.argv[0], "layout"], sys.argv[1:]
from stranger import WIRE  # noqa: E402

ETH_P_ALL = 3
OUTGOING = 4  # PACKET_OUTGOING: seen before, when it came in
HEARD = 8  # seconds for an answer
SAID = 2 * WIRE["bytes"]  # hello and proof
BEGINNING = struct.pack("<IBB", WIRE["magic"], WIRE["version"], WIRE["hello"])


def segment(packet):
    """Of a TCP segment in IPv4: (its two ends, whether a stream begins, sequence number, payload)."""
    if len(packet) < 54 or packet[12:14] != b"\x08\x00" or packet[23] != socket.IPPROTO_TCP:
        return None
    at = 14 + 4 * (packet[14] & 15)
    end = 14 + struct.unpack("!H", packet[16:18])[0]
    sport, dport, number = struct.unpack("!HHI", packet[at:at + 8])
    offset, flags = packet[at + 12] >> 4, packet[at + 13]
    return (packet[26:30], sport, packet[30:34], dport), bool(flags & 2), number, packet[at + 4 * offset:end]


def record(path):
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
    begun, said = {}, {}
    with open(path, "w", encoding="utf-8") as out:
        while True:
            packet, (_, _, kind, _, _) = link.recvfrom(1 << 17)
            found = segment(packet) if kind != OUTGOING else None
            if found is None:
                continue
            ends, begins, number, payload = found
            if begins:
                begun[ends], said[ends] = (number + 1) % 2**32, bytearray(SAID)
            if ends not in begun or not payload:
                continue
            place = (number - begun[ends]) % 2**32
            said[ends][place:place + len(payload)] = payload
            if place + len(payload) >= SAID and said[ends].startswith(BEGINNING):
                out.write(f"{socket.inet_ntoa(ends[2])} {ends[3]} {said[ends].hex()}\n")
                out.flush()
                del begun[ends], said[ends]


def heard(link, enough):
    """What comes until `enough` is there or it is closed; and whether it is."""
    answer = b""
    link.settimeout(0.2)
    end = time.monotonic() + HEARD
    while len(answer) < enough and time.monotonic() < end:
        try:
            more = link.recv(65536)
        except socket.timeout:
            continue
        except OSError:
            return answer, True
        if not more:
            return answer, True
        answer += more
    return answer, False


def say_again(address, port, said, at_once):
    """"" if it was refused, else what went wrong."""
    with socket.create_connection((address, port), timeout=5) as link:
        challenge = b""
        try:
            if at_once:
                link.sendall(said)
            else:
                link.sendall(said[:WIRE["bytes"]])
                challenge, closed = heard(link, WIRE["bytes"])
                if closed or len(challenge) != WIRE["bytes"]:
                    return f"not challenged, {len(challenge)} bytes"
                link.sendall(said[WIRE["bytes"]:])
        except OSError:
            pass
        more, closed = heard(link, 1 << 20)
        if len(challenge + more) > WIRE["bytes"]:
            return f"{len(challenge + more)} bytes were handed out"
        return "" if closed else "nobody has hung up"


def replay(path):
    with open(path, encoding="utf-8") as text:
        lines = [line.split() for line in text if line.endswith("\n")]
    troubles = [f"{address}:{port}: {trouble}" for address, port, said in lines for at_once in (False, True)
                if (trouble := say_again(address, int(port), bytes.fromhex(said)[:SAID], at_once))]
    print(f"{len(lines)} recorded, {len(troubles)} not refused: {troubles}")
    return 0 if lines and not troubles else 1


if __name__ == "__main__":
    sys.exit({"record": record, "replay": replay}[ARGUMENTS[0]](ARGUMENTS[1]))
