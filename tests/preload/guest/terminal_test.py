# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""A program at a real terminal: Ctrl-C, Ctrl-Z, Ctrl-\\, input from the terminal; what the shell and
the user see is the same with and without hostwait."""

import os
import pathlib
import pty
import re
import select
import sys
import time

from guest_support import TOOL, GuestCase, main, program

SHELL = str(pathlib.Path(__file__).resolve().parent / "terminal_shell.py")
PROCESSES = program("guest_processes")
CTRL_C, CTRL_Z, CTRL_BACKSLASH = b"\x03", b"\x1a", b"\x1c"


class Session:
    """A job at a terminal of its own: what it prints, and what its shell sees of it."""

    def __init__(self, words, folder, environment, place="fg"):
        self.events_read, events_write = os.pipe()
        os.set_inheritable(events_write, True)
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            command = [sys.executable, "-B", SHELL, str(events_write), place, *words]
            os.execve(sys.executable, command, environment)
        os.close(events_write)
        self.screen, self.events = "", []
        self.open = {self.terminal, self.events_read}

    def _read(self, until):
        deadline = time.monotonic() + 60
        while not until():
            ready, _, _ = select.select(list(self.open), [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"nothing came; screen {self.screen!r}, events {self.events}")
            for descriptor in ready:
                try:
                    data = os.read(descriptor, 4096)
                except OSError:  # EIO: nobody has the terminal open any more
                    data = b""
                if not data:
                    self.open.discard(descriptor)
                    if not self.open and not until():
                        raise AssertionError(f"ended; screen {self.screen!r}, events {self.events}")
                elif descriptor == self.terminal:
                    self.screen += data.decode()
                else:
                    self.events += data.decode().splitlines()

    def shows(self, text):
        self._read(lambda: text in self.screen)

    def event(self, count):
        self._read(lambda: len(self.events) >= count)

    def type(self, data):
        os.write(self.terminal, data)

    def end(self):
        self._read(lambda: any(event.startswith(("exited", "signaled")) for event in self.events) and self.terminal not in self.open)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)
        os.close(self.events_read)
        # The terminal throws away output, its own echo of the keys too, when a key makes a signal.
        text = re.sub(r"\^[CZ\\]|\r", "", self.screen)
        return self.events, [line for line in text.splitlines() if line]


def interrupt(session):
    session.type(CTRL_C)


def quit_it(session):
    session.type(CTRL_BACKSLASH)


def stop_and_go_on(session):
    session.type(CTRL_Z)
    session.event(1)
    session.type(b"first\n")
    session.shows("line first")
    session.type(CTRL_Z)
    session.event(2)
    session.type(b"second\n")
    session.shows("line second")
    session.type(b"end\n")


def interrupt_and_go_on(session):
    session.type(CTRL_C)
    session.type(b"first\n")
    session.shows("line first")
    session.type(b"end\n")


def everything_ignored(session):
    session.type(CTRL_Z)
    session.type(CTRL_C)
    session.type(b"first\n")
    session.shows("line first")
    session.type(b"end\n")


def stop_then_interrupt(session):
    session.type(CTRL_Z)
    session.event(1)
    session.type(b"first\n")
    session.shows("line first")
    session.type(CTRL_C)


def read_in_the_background(session):
    session.event(1)
    session.type(b"first\n")
    session.shows("line first")
    session.type(b"end\n")


CASES = (
    ("plain", interrupt, ["signaled 2"]),
    ("plain", quit_it, ["signaled 3"]),
    ("plain", stop_and_go_on, ["stopped 20", "stopped 20", "exited 12"]),
    ("plain", stop_then_interrupt, ["stopped 20", "signaled 2"]),
    ("plain", read_in_the_background, ["stopped 21", "exited 12"]),
    ("handles", interrupt_and_go_on, ["exited 12"]),
    ("ignores", everything_ignored, ["exited 12"]),
)


class Terminal(GuestCase):
    def played(self, words, script):
        place = "bg" if script is read_in_the_background else "fg"
        session = Session(words, self.folder, self.environment, place)
        session.shows("ready")
        script(session)
        return session.end()

    def test_keys_do_what_they_do_without_us(self):
        for way, script, events in CASES:
            with self.subTest(f"{way}, {script.__name__}"):
                words = ["/bin/sh", "-c", f"ulimit -c 0; exec '{PROCESSES}' terminal {way}"]
                without = self.played(words, script)
                self.assertEqual(without[0], events)
                self.assertEqual(self.played([TOOL, "run", "-q", "--", *words], script), without)
                expected = 2 if events[-1].startswith("signaled") else 3
                self.assertEqual(self.calls(), [expected])
                self.forget_records()


if __name__ == "__main__":
    main()
