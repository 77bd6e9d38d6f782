"""Plain TCP streams between hosts: `receive ADDRESS PORT COUNT` prints the seconds from the first
connection to the last end, and the bytes; `send ADDRESS PORT COUNT BYTES`, each connection so many."""
import socket
import sys
import threading
import time


def in_threads(count, work):
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def receive(address, port, count):
    server = socket.create_server((address, port))
    links = [server.accept()[0] for _ in range(count)]
    begin, totals = time.monotonic(), []

    def drain():
        link, total = links.pop(), 0
        while data := link.recv(1 << 20):
            total += len(data)
        totals.append(total)
    in_threads(count, drain)
    print("seconds", time.monotonic() - begin, "bytes", sum(totals), flush=True)


def send(address, port, count, length):
    def feed():
        for _ in range(50):    # until the receiver listens
            try:
                link = socket.create_connection((address, port), 5)
                break
            except ConnectionRefusedError:
                time.sleep(0.1)
        link.sendall(bytes(length))
        link.close()
    in_threads(count, feed)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[3:]]
    {"receive": receive, "send": send}[sys.argv[1]](sys.argv[2], *numbers)
