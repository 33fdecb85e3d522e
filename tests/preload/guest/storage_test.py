# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Where the record lies: full, forbidden, missing, remote, shared and crowded places. Whatever
happens to the record, the program prints and returns what it does without hostwait."""

import os
import resource
import shutil
import subprocess
import time

from guest_support import LIB, MAKE_RECORDS, PRIVATE, SHIM, TOOL, GuestCase, main, program

STORAGE = program("guest_storage")
SITES = "3000"  # more than the first extents hold, and than 200 KiB


class Mounts(GuestCase):
    """Each case in mounts of its own: `script` is shell text that prepares them, $PLACE a folder."""

    def setUp(self):
        super().setUp()
        self.beside_the_build()
        os.mkdir(self.path("place"))
        self.without = self.plain(STORAGE, SITES)
        self.assertEqual((self.without.returncode, self.without.stdout), (0, f"sum {SITES}\n"))

    def prepared(self, script, command, options=""):
        environment = {**self.environment, "PLACE": self.path("place"), "PRELOAD": SHIM, "OPTIONS": options, "PROGRAM": STORAGE,
                       "TOOL": TOOL, "SITES": SITES}
        probe = subprocess.run([*PRIVATE, "sh", "-ec", f'{script}\ntest -x "$PROGRAM" && test -x "$TOOL"'], env=environment, cwd=self.folder, capture_output=True, text=True)
        if probe.returncode != 0:
            self.skipTest(f"cannot be prepared here: {probe.stderr.strip()[-200:]}")
        return subprocess.run([*PRIVATE, "sh", "-ec", f"{script}\nset +e\n{command}"], env=environment, cwd=self.folder,
                              capture_output=True, text=True, timeout=120)

    BARE = 'LD_PRELOAD="$PRELOAD" HOSTWAIT_OPTIONS="$OPTIONS" "$PROGRAM" "$SITES"; echo status $?'

    def bare(self, script, *said, options="", lines=1, then=""):
        result = self.prepared(script, self.BARE + "\n" + then, options)
        self.assertTrue(result.stdout.startswith(self.without.stdout + "status 0\n"), result.stdout + result.stderr)
        for part in said:
            self.assertIn(part, result.stderr)
        self.assertEqual(result.stderr.count("\n"), lines if said else 0, result.stderr)
        return result.stdout

    TINY = "mount -t tmpfs -o size=64k tmpfs /dev/shm; mount -t tmpfs -o size=64k tmpfs /tmp; unset XDG_RUNTIME_DIR; "
    OWN_SHM = "mount -t tmpfs tmpfs /dev/shm; "  # its records go with the mount
    FILL = 'dd if=/dev/zero of=$D/fill bs=1k 2>/dev/null || true; '

    def test_a_tmpfs_that_runs_full(self):
        out = self.bare(self.TINY, then='"$TOOL" report /dev/shm')
        self.assertIn("no room for more sites", out)

    def test_every_folder_full_from_the_start(self):
        fill = self.TINY + "".join(self.FILL.replace("$D", folder) for folder in ("/dev/shm", "/tmp"))
        self.bare(fill, "it is kept in memory")

    def test_a_full_disk(self):
        # ext2 has no fallocate: room is made by writing, as posix_fallocate does it.
        script = (self.OWN_SHM + 'dd if=/dev/zero of="$PLACE.img" bs=1k count=512 2>/dev/null; mkfs.ext2 -q -m 0 -N 16 "$PLACE.img" >/dev/null 2>&1; '
                  'mount -o loop "$PLACE.img" "$PLACE"; ')
        # With a little room: it begins there, and growth ends.
        little = script + 'head -c 120k /dev/zero > "$PLACE/fill"; '
        self.bare(little, options=f"output={self.path('place')}")
        full = script + self.FILL.replace("$D", '"$PLACE"')
        self.bare(full, "no space left", options=f"output={self.path('place')}")

    def test_a_read_only_root(self):
        script = ("mount -t tmpfs -o ro tmpfs /dev/shm; mount -t tmpfs -o ro tmpfs /tmp; mount --bind . .; mount -o remount,ro,bind .; "
                  "cd .; unset XDG_RUNTIME_DIR; ")
        self.bare(script, "it is kept in memory")
        result = self.prepared(script, 'cd "$PWD"; "$TOOL" run -- touch "$PLACE/ran"; echo status $?')
        self.assertIn("status 2\n", result.stdout)
        self.assertIn("cannot be written: Read-only file system", result.stderr)
        self.assertFalse(os.path.exists(self.path("place", "ran")))

    def test_no_dev_shm(self):
        script = "mount -t tmpfs tmpfs /dev; : > /dev/null; unset XDG_RUNTIME_DIR; mount -t tmpfs tmpfs /tmp; "
        out = self.bare(script, then='ls /tmp; "$TOOL" report')
        self.assertIn("hostwait-guest_storage", out)
        self.assertIn("cuCtxSynchronize", out)
        script = script.replace("unset XDG_RUNTIME_DIR", 'export XDG_RUNTIME_DIR="$PLACE"; chmod 700 "$PLACE"')
        self.assertIn("cuCtxSynchronize", self.bare(script, then='ls /tmp; "$TOOL" report'))

    def test_a_file_system_in_user_space_is_not_mapped(self):
        # What a network file system is to us: a server that may go away under a mapping.
        if shutil.which("fuse2fs") is None or not os.access("/dev/fuse", os.W_OK):
            self.skipTest("no fuse2fs or no /dev/fuse here")
        script = (self.OWN_SHM + 'dd if=/dev/zero of="$PLACE.img" bs=1k count=4096 2>/dev/null; mkfs.ext4 -q "$PLACE.img"; '
                  'fuse2fs -o fakeroot "$PLACE.img" "$PLACE" >/dev/null 2>&1; ')
        self.bare(script, "(not a local file system): the record is /", options=f"output={self.path('place')}",
                  then='ls "$PLACE"')
        # `run` records elsewhere and moves the record there at the end.
        result = self.prepared(script, '"$TOOL" run --output "$PLACE" -- "$PROGRAM" "$SITES"; echo status $?; ls "$PLACE"')
        self.assertIn("status 0\n", result.stdout, result.stderr)
        self.assertIn(".hwr", result.stdout)


class Limits(GuestCase):
    def test_limits_on_file_sizes(self):
        without = self.plain(STORAGE, SITES)
        for kib in (0, 8, 64, 200):
            shell = f"ulimit -f {2 * kib}; exec '{STORAGE}' {SITES}"  # dash counts in 512 bytes
            result = self.preloaded("sh", "-c", shell)
            self.assertEqual((result.returncode, result.stdout), (0, without.stdout), kib)
            if kib < 32:
                self.assertIn("the limit on file sizes", result.stderr)
            for name in self.records():
                self.assertLessEqual(os.path.getsize(self.path(name)), kib * 1024)
                self.report(self.path(name))
                os.unlink(self.path(name))


class Names(GuestCase):
    def test_spaces_and_colons_everywhere(self):
        odd = self.path("a folder: with \\ both")
        os.mkdir(odd)
        for library in ("libhostwait.so", "libhostwait_link.so"):
            shutil.copy(os.path.join(LIB, library), odd)
        shutil.copy(STORAGE, os.path.join(odd, "a program: too"))
        environment = {**self.environment, "HOSTWAIT_LIBDIR": odd}
        command = os.path.join(odd, "a program: too")
        result = self.hostwait("run", "-q", "--output", odd, "--", command, "2", env=environment, cwd=odd)
        self.assertEqual((result.returncode, result.stdout), (0, "sum 2\n"), result.stderr)
        self.assertEqual(self.calls(folder=odd), [2])
        (name,) = self.records(odd)
        self.assertNotIn(" ", name)
        os.unlink(os.path.join(odd, name))
        # The same folder as an option: the colon is escaped.
        escaped = odd.replace("\\", "\\\\").replace(":", "\\:")
        environment = {**self.environment, "LD_PRELOAD": SHIM, "HOSTWAIT_OPTIONS": f"output={escaped}:level=log"}
        result = self.plain(command, "2", env=environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(self.calls(folder=odd), [2])


class Shared(GuestCase):
    """A folder into which others may write, too."""

    def test_links_and_foreign_files_are_not_taken_for_records(self):
        victim = self.path("victim")
        with open(victim, "w") as file:
            file.write("precious")
        os.mkdir(self.path("shared"))
        os.mkdir(self.path("out"))
        subprocess.run([MAKE_RECORDS, "as-shim", "folder", self.path("shared")], check=True, env=self.environment)
        (name,) = self.records(self.path("shared"))
        os.symlink(victim, self.path("shared", "hostwait-x-h-1-1-00000000.hwr"))
        os.symlink("/proc/self/mem", self.path("shared", "hostwait-y-h-1-1-00000000.hwr"))
        os.mkfifo(self.path("shared", "hostwait-z-h-1-1-00000000.hwr"))
        os.symlink(victim, self.path("out", name))
        self.assertEqual(len(self.report(self.path("shared"))["processes"]), 1)
        # A link at the target's name is neither followed nor replaced.
        self.assertIn("is there already", self.refused(2, "collect", self.path("out"), "--from", self.path("shared")))
        os.unlink(self.path("out", name))
        self.assertEqual(self.hostwait("collect", self.path("out"), "--from", self.path("shared")).returncode, 0)
        self.assertEqual(self.records(self.path("out")), [name])
        with open(victim) as file:
            self.assertEqual(file.read(), "precious")
        self.assertTrue(os.path.islink(self.path("shared", "hostwait-x-h-1-1-00000000.hwr")))

    def test_a_record_is_made_where_nobody_can_wait_for_it(self):
        strace = shutil.which("strace")
        if strace is None:
            self.skipTest("no strace here")
        done = subprocess.run([strace, "-f", "-e", "trace=openat", "-o", self.path("trace"), TOOL, "run", "-q", "--", STORAGE, "2"],
                              capture_output=True, text=True, cwd=self.folder, env=self.environment)
        if "ptrace" in done.stderr:
            self.skipTest(f"strace may not trace here: {done.stderr.strip()[:200]}")
        with open(self.path("trace")) as file:
            made = [line for line in file if ".hwr" in line and "O_CREAT" in line]
        self.assertTrue(made)
        for line in made:
            self.assertIn("O_EXCL", line)
            self.assertIn("O_NOFOLLOW", line)
            self.assertIn("0600", line)

    def test_records_of_others_are_not_ours(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make another user's file")
        subprocess.run([MAKE_RECORDS, "as-shim", "folder", self.folder], check=True, env=self.environment)
        (name,) = self.records()
        os.chown(self.path(name), 65534, 65534)
        self.assertIn("must be yours", self.refused(2, "report", self.folder))

    def test_thousands_of_records_in_a_folder(self):
        crowd = 2000
        os.mkdir(self.path("crowd"))
        os.mkdir(self.path("out"))
        subprocess.run([MAKE_RECORDS, "as-shim", "folder", self.path("crowd")], check=True, env=self.environment)
        (name,) = self.records(self.path("crowd"))
        stem = name[: -len("00000000.hwr")]
        for i in range(1, crowd):
            shutil.copy(self.path("crowd", name), self.path("crowd", f"{stem}{i:08x}.hwr"))
        start = time.monotonic()
        report = self.report(self.path("crowd"))
        self.assertEqual(len(report["processes"]), crowd)
        result = self.hostwait("collect", self.path("out"), "--from", self.path("crowd"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(self.records(self.path("out"))), crowd)
        # Generous: what is held is that the work does not grow with the square of their number.
        self.assertLess(time.monotonic() - start, 120)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 1 << 20)


if __name__ == "__main__":
    main()
