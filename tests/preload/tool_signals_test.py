# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""hostwait run between its caller and the program: signals, job control, process group."""

import os
import signal
import subprocess
import time

import tool_support
from tool_support import TOOL


def own_group():
    os.setpgid(0, 0)


class Signals(tool_support.Case):
    def start(self, script, **more):
        more.setdefault("preexec_fn", own_group)
        process = subprocess.Popen(
            [TOOL, "run", "-q", "--", "sh", "-c", script],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=self.folder, env=self.environment, **more,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def ready(self, process):
        self.assertEqual(process.stdout.readline(), "ready\n")

    def test_the_programs_signal_is_the_tools(self):
        for number in (signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGABRT, signal.SIGHUP, signal.SIGPIPE):
            result = self.hostwait("run", "-q", "--", "sh", "-c", f"kill -{int(number)} $$")
            self.assertEqual(result.returncode, -number)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("core")], [])

    def test_a_signal_to_the_tool_reaches_the_program(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT):
            process = self.start(f"trap 'exit 9' {int(number)}; echo ready; while :; do sleep 0.05; done")
            self.ready(process)
            process.send_signal(number)
            self.assertEqual(process.wait(30), 9)

    def test_a_signal_that_kills_the_program_kills_the_tool(self):
        process = self.start("echo ready; exec sleep 60")
        self.ready(process)
        process.terminate()
        self.assertEqual(process.wait(30), -signal.SIGTERM)

    def test_a_signal_the_program_survives_is_survived(self):
        process = self.start("trap '' TERM; echo ready; sleep 0.5; exit 4")
        self.ready(process)
        process.terminate()
        self.assertEqual(process.wait(30), 4)

    def test_the_program_stays_in_the_process_group(self):
        process = self.start("ps -o pgid= -p $$ | tr -d ' '")
        self.assertEqual(process.stdout.readline().strip(), str(process.pid))
        self.assertEqual(process.wait(30), 0)

    def test_dispositions_and_mask_are_inherited(self):
        def prepare():
            own_group()
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

        status = "grep -E '^Sig(Blk|Ign)' /proc/self/status"
        direct = subprocess.run(["sh", "-c", status], capture_output=True, text=True, preexec_fn=prepare)
        process = self.start(status, preexec_fn=prepare)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(out, direct.stdout)
        self.assertEqual(process.returncode, 0)

    def test_job_control_stops_the_tool_with_the_program(self):
        process = self.start("echo ready; kill -TSTP $$; exit 5")
        self.ready(process)
        pid, status = os.waitpid(process.pid, os.WUNTRACED)
        self.assertEqual(pid, process.pid)
        self.assertTrue(os.WIFSTOPPED(status))
        self.assertEqual(os.WSTOPSIG(status), signal.SIGTSTP)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(30), 5)

    def test_a_program_stopped_alone_may_be_continued_alone(self):
        process = self.start("echo $$; kill -STOP $$; exit 6")
        child = int(process.stdout.readline())
        for _ in range(600):
            with open(f"/proc/{child}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "T":
                    break
            time.sleep(0.05)
        os.kill(child, signal.SIGCONT)
        self.assertEqual(process.wait(30), 6)


if __name__ == "__main__":
    tool_support.main()
