"""Two people chat by `rouse chat`, each at a terminal (pyte) of 80 x 24, and what they do with
their phones is judged by what stands on the screens."""

import argparse
import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import sys
import tempfile
import termios
import time

import pyte

PATIENCE = 60


class Terminal:
    """A person at a terminal."""

    people = []

    def __init__(self, user, arguments, folder, name="xterm-256color", shell=False):
        """`shell`: the program is told to a shell, that has jobs."""
        self.user = user
        self.screen = pyte.Screen(80, 24)
        self.stream = pyte.ByteStream(self.screen)
        # Held open, so that the terminal outlives the program that is leaving it.
        self.master, self.terminal = pty.openpty()
        self.before = termios.tcgetattr(self.terminal)
        self.process = os.fork()
        if self.process == 0:
            os.login_tty(self.terminal)
            os.environ.update(LC_ALL="C.UTF-8", TERM=name)
            words = [
                arguments.rouse, "chat", "--user", user, "--app", arguments.app,
                "--key", arguments.key, "--kid", arguments.kid, "--ca", arguments.ca,
                "--port", arguments.port, "--folder", f"{folder}/{user}",
            ]
            if arguments.apns:
                words += ["--apns", arguments.apns, "--topic", arguments.topic]
            if shell:
                # What runs the tests may block signals, and a shell hears of its jobs by one.
                signal.pthread_sigmask(signal.SIG_SETMASK, [])
                os.environ.update(PS1="shell: ", CHAT=shlex.join(words))
                words = ["/bin/bash", "--norc", "--noprofile", "--noediting", "-i"]
            os.execv(words[0], words)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.raw = b""
        Terminal.people.append(self)

    def type(self, text):
        os.write(self.master, text.encode())

    def line(self, text):
        self.type(text + "\r")

    def look(self, seconds):
        """Takes what is written within so many seconds; False: the program has ended. Whoever
        else sits at a terminal looks too: a program waits whose terminal takes nothing."""
        for other in Terminal.people:
            if other is not self:
                other.take(0)
        return self.take(seconds)

    def take(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return False
            if not data:
                return False
            self.raw = (self.raw + data)[-100_000:]
            self.stream.feed(data)
        return True

    @property
    def text(self):
        return "\n".join(self.screen.display)

    def sees(self, pattern, absent=False, seconds=PATIENCE, must=True):
        """Waits until it stands on the screen, or stands there no more; whether it did."""
        end = time.monotonic() + seconds
        while bool(re.search(pattern, self.text)) == absent:
            if time.monotonic() > end or not self.look(0.2):
                if not must:
                    return False
                what = "still sees" if absent else "does not see"
                screens = "\n".join(person.text for person in Terminal.people)
                sys.exit(f"{self.user} {what} {pattern!r}:\n{screens}")
        return True

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def leave(self, how):
        """Ends the program; its status. The terminal is as it was before it."""
        self.type(how)
        end = time.monotonic() + PATIENCE
        ended = 0
        while not ended:
            self.look(0.2)
            ended, status = os.waitpid(self.process, os.WNOHANG)
            if not ended and time.monotonic() > end:
                sys.exit(f"{self.user} cannot leave:\n{self.text}")
        while select.select([self.master], [], [], 0)[0] and self.take(0):
            pass
        after = termios.tcgetattr(self.terminal)
        if after != self.before:
            sys.exit(f"{self.user} left another terminal: {after}, not {self.before}")
        os.close(self.terminal)
        Terminal.people.remove(self)
        return os.waitstatus_to_exitcode(status)


def story(anna, ben):
    anna.sees("in sync")
    ben.sees("in sync")
    anna.line("/nonsense")
    anna.sees("there is no /nonsense")
    anna.line("/new ben : Dinner")
    anna.sees("Dinner +in sync|Dinner .*nobody|Nobody has said")
    ben.sees("1 Dinner")
    ben.line("/open Dinner")
    ben.sees("Nobody has said")

    # A signal may be dropped: a person goes on typing.
    for character in "At eigh":
        anna.type(character)
        if ben.sees("anna is typing", seconds=4, must=False):
            break
    ben.sees("anna is typing")
    anna.type("\x15")
    anna.line("At eight? 😀")
    ben.sees("anna: At eight\\? 😀")
    # ben looks at it: it is read, and nothing is told on his phone.
    anna.sees("you: At eight\\? 😀.*✓✓ read")
    ben.sees("anna is typing", absent=True)
    ben.sees("no notifications")

    ben.line("/lock")
    ben.sees("app in the background")
    anna.line("Or at nine?")
    # The app runs on behind the lock: it shows what came, and the icon counts it.
    ben.sees("ben's phone \\(1\\)")
    ben.sees("Or at nine\\?")
    anna.sees("Or at nine\\?.*✓✓(?! read)")

    ben.line("/sleep")
    ben.sees("app suspended")
    anna.line("Or not at all?")
    anna.sees("Or not at all\\? +✓(?!✓)")
    ben.line("/wake")
    ben.sees("the app told the system: new_data")
    ben.sees("ben's phone \\(2\\)")
    ben.sees("Or not at all\\?")

    ben.line("/kill")
    ben.sees("app not running")
    # What was on the phone's screen stays there.
    ben.sees("ben's phone \\(2\\)")
    ben.line("/tap 1")
    ben.sees("app in front")
    ben.sees("anna: Or not at all\\?")
    # All of the conversation is read with it: nothing stands any more.
    ben.sees("no notifications")
    ben.sees("ben's phone \\(", absent=True)
    anna.sees("Or not at all\\?.*read")

    ben.line("/kill")
    ben.sees("app not running")
    anna.line("/edit Or never?")
    anna.sees("Or never\\? \\(edited\\)")
    ben.line("/start")
    ben.sees("1 Dinner")
    ben.line("/open 1")
    ben.sees("anna: Or never\\? \\(edited\\)")
    ben.line("Never.")
    anna.sees("ben: Never\\.")
    ben.sees("you: Never\\. +✓")
    ben.line("/delete")
    anna.sees("ben: Never\\.", absent=True)

    # A terminal that becomes small shows the app alone.
    anna.resize(50, 10)
    anna.sees("(?s)^(?!.*phone).*in sync")


def pushed(anna, ben):
    """The server's own pushes, by an APNs simulator, on ben's phone."""
    anna.sees("in sync")
    ben.sees("in sync")
    anna.line("/new ben : Dinner")
    ben.sees("1 Dinner")
    ben.line("/sleep")
    ben.sees("app suspended")
    anna.line("At eight?")
    # A silent push wakes the app, and the app shows what it found.
    ben.sees("the app told the system: new_data")
    ben.sees("app suspended")
    ben.sees("ben's phone \\(1\\)")
    ben.sees("At eight\\?")
    anna.sees("At eight\\?.*✓✓(?! read)")

    ben.line("/kill")
    ben.sees("app not running")
    anna.line("Or at nine?")
    # It is launched for it, or alerted where the next silent push comes too soon.
    ben.sees("Or at nine\\?")
    ben.sees("ben's phone \\(2\\)")
    ben.line("/tap 1")
    ben.sees("app in front")
    ben.sees("anna: Or at nine\\?")
    ben.sees("no notifications")
    anna.sees("Or at nine\\?.*read")


def stopped(anna):
    """The chat as a job of a shell: it stops and goes on, and the shell has its terminal."""
    anna.sees("shell: ")
    for stop in ["key", signal.SIGTSTP, signal.SIGSTOP]:
        anna.line("$CHAT")
        anna.sees("1 Dinner")
        anna.type("half a")
        anna.sees("> half a")
        if stop == "key":
            anna.type("\x1a")
        else:
            os.kill(os.tcgetpgrp(anna.master), stop)
        anna.sees("Stopped")
        if stop != signal.SIGSTOP and not re.search(rb"\[\?1049l(?!.*\[\?1049h)", anna.raw, re.S):
            sys.exit(f"a chat that stopped keeps the terminal: {anna.raw[-200:]!r}")
        anna.line("clear; echo by $((6 * 7))")
        anna.sees("by 42")
        anna.sees("Dinner|half", absent=True)
        anna.line("fg; echo ended $?")
        anna.sees("1 Dinner")
        anna.sees("> half a")
        anna.type(" line")
        anna.sees("> half a line")
        anna.type("\x03")
        anna.sees("ended 0")
        anna.line("clear")
        anna.sees("Dinner|half", absent=True)
    # Whatever another program made of the terminal, what is drawn on it is drawn with its keyboard.
    anna.line("$CHAT; echo ended $?")
    anna.sees("1 Dinner")
    termios.tcsetattr(anna.terminal, termios.TCSANOW, anna.before)
    anna.resize(80, 20)
    end = time.monotonic() + PATIENCE
    while termios.tcgetattr(anna.terminal)[3] & termios.ICANON:
        if time.monotonic() > end:
            sys.exit("a chat draws on a terminal whose keyboard is not its own")
        anna.look(0.2)
    anna.type("\x03")
    anna.sees("ended 0")
    anna.resize(80, 24)


def heaped(anna):
    """A letter with very many marks, pasted: the chat goes on."""
    anna.type("\x1b[200~a")
    for _ in range(400):
        anna.type("\u0301" * 500)
        anna.look(0)
    anna.type("\x1b[201~\x15")
    anna.line("/open 1")
    anna.sees("older above|you: |Nobody has said")
    # What would fill its queue for a while does not keep anybody.
    for _ in range(400):
        anna.type("x" * 500)
        anna.look(0)


def main():
    parser = argparse.ArgumentParser()
    for name in ["port", "ca", "app", "key", "kid", "rouse"]:
        parser.add_argument(f"--{name}", required=True)
    for name in ["apns", "topic"]:
        parser.add_argument(f"--{name}")
    arguments, _ = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        people = Terminal.people
        for user in ["anna", "ben"]:
            Terminal(user, arguments, folder)
        try:
            if arguments.apns:
                pushed(*people)
                print("chat: ok")
                return
            story(*people)
            for person, how in zip(list(people), ["/quit\r", "\x03"]):
                status = person.leave(how)
                # The screen that was there before comes back, with its cursor.
                if status != 0 or not person.raw.endswith(b"\x1b[?25h\x1b[?1049l"):
                    sys.exit(f"{person.user} left with {status}: {person.raw[-80:]!r}")
            ended = Terminal("anna", arguments, folder)
            ended.sees("in sync")
            ended.sees("1 Dinner")
            os.kill(ended.process, signal.SIGTERM)
            status = ended.leave("")
            if status != 128 + signal.SIGTERM or not ended.raw.endswith(b"\x1b[?1049l"):
                sys.exit(f"a chat that was ended left {status}, {ended.raw[-80:]!r}")
            dumb = Terminal("anna", arguments, folder, name="dumb")
            if dumb.leave("") != 69 or b"\x1b" in dumb.raw or b"dumb" not in dumb.raw:
                sys.exit(f"a terminal that obeys nothing got {dumb.raw!r}")
            heap = Terminal("anna", arguments, folder)
            heap.sees("1 Dinner")
            heaped(heap)
            if heap.leave("\x03") != 0:
                sys.exit("a chat with a heap of marks failed")
            shell = Terminal("anna", arguments, folder, shell=True)
            stopped(shell)
            if shell.leave("exit\r") != 0:
                sys.exit("the shell failed")
        finally:
            for person in list(people):
                try:
                    os.kill(person.process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
    print("chat: ok")


main()
