#!/usr/bin/env python3
"""test/lab/stranger.py: it writes a Hello as long as the source's, and notices when that is laid out otherwise."""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
STRANGER = os.path.join(TOP, "test", "lab", "stranger.py")
NET = os.path.join(TOP, "src", "mplite", "net")


def number(name):
    """A constant of hello.h or frame.h."""
    for file in "hello.h", "frame.h":
        with open(os.path.join(NET, file), encoding="utf-8") as text:
            found = re.search(rf"\b{name} = (\w+)[;,]", text.read())
        if found:
            return int(found.group(1), 0)
    raise LookupError(name)


def stranger(*arguments, program=STRANGER):
    return subprocess.Popen([sys.executable, program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class Layout(unittest.TestCase):
    def test_is_the_sources(self):
        job = stranger("layout")
        said = job.communicate()[0]
        self.assertEqual(job.returncode, 0, said)

    def test_of_another_size_is_noticed(self):
        with tempfile.TemporaryDirectory() as folder:
            net = os.path.join(folder, "src", "mplite", "net")
            program = os.path.join(folder, "test", "lab", "stranger.py")
            os.makedirs(net)
            os.makedirs(os.path.dirname(program))
            shutil.copy(STRANGER, program)
            shutil.copy(os.path.join(NET, "frame.h"), net)
            with open(os.path.join(NET, "hello.h"), encoding="utf-8") as text:
                hello = text.read()
            with open(os.path.join(net, "hello.h"), "w", encoding="utf-8") as text:
                text.write(re.sub(r"kHelloBytes = \w+", "kHelloBytes = 96", hello))
            job = stranger("layout", program=program)
            said = job.communicate()[0]
            self.assertEqual(job.returncode, 1)
            self.assertIn("96 bytes", said)


class Messages(unittest.TestCase):
    """A rank's part is played by the test."""

    def setUp(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.listener.close)
        self.listener.settimeout(10)
        self.bytes = number("kHelloBytes")

    def call(self, kind):
        job = stranger(kind, "127.0.0.1", str(self.listener.getsockname()[1]), "5", "1")
        link = self.listener.accept()[0]
        self.addCleanup(link.close)
        link.settimeout(10)
        return job, link

    def hung_up_on(self, job, link):
        link.close()
        said = job.communicate(timeout=20)[0]
        self.assertEqual(job.returncode, 0, said)

    def first_message(self, link):
        said = link.recv(2 * self.bytes)
        while len(said) < self.bytes:
            more = link.recv(2 * self.bytes)
            self.assertTrue(more, "it hung up in the middle of its first message")
            said += more
        self.assertEqual(len(said), self.bytes)
        return said

    def test_an_outdated_stranger_says_a_whole_hello(self):
        job, link = self.call("outdated")
        said = self.first_message(link)
        self.assertEqual(said[4], number("kWireVersion") - 1)
        self.hung_up_on(job, link)

    def test_one_that_forges_answers_a_challenge_with_a_whole_proof(self):
        job, link = self.call("forged")
        hello = self.first_message(link)
        challenge = bytearray(hello)
        challenge[5] = number("kChallenge")
        mac_at = self.bytes - 16 - number("kMacBytes")
        challenge[mac_at:mac_at + number("kMacBytes")] = os.urandom(number("kMacBytes"))
        link.sendall(challenge)
        proof = self.first_message(link)
        self.assertEqual(proof[5], number("kProof"))
        self.hung_up_on(job, link)


if __name__ == "__main__":
    unittest.main(verbosity=2)
