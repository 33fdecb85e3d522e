# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""A shell's part of job control: terminal_shell.py EVENTS-FD fg|bg PROGRAM ARGS…. Runs the program as a
job of this terminal; a stopped job is continued in the foreground. Writes what waitpid says to
EVENTS-FD."""

import os
import signal
import sys

events = int(sys.argv[1])
signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # as shells do: tcsetpgrp from the background
terminal = os.open("/dev/tty", os.O_RDWR)


def say(text):
    os.write(events, text.encode() + b"\n")


job = os.fork()
if job == 0:
    os.close(events)
    os.setpgid(0, 0)
    if sys.argv[2] == "fg":
        os.tcsetpgrp(terminal, os.getpid())
    os.close(terminal)
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[3], sys.argv[3:])
try:
    os.setpgid(job, job)
except OSError:
    pass  # it has done so itself and is past its exec
while True:
    _, status = os.waitpid(job, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        break
    os.tcsetpgrp(terminal, os.getpgid(0))
    say(f"stopped {os.WSTOPSIG(status)}")
    os.tcsetpgrp(terminal, job)
    os.killpg(job, signal.SIGCONT)
os.tcsetpgrp(terminal, os.getpgid(0))
say(f"signaled {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exited {os.WEXITSTATUS(status)}")
