"""Types lines into a real shell on a terminal, presses Tab, and tells what the words became.

usage: completion.py bash|zsh SCRIPT LINES.json

LINES.json is a list of lines that end where Tab is pressed. Prints a list with the words of each
line after that. The shell does not run the line: `printf` is put before it.
"""

import json
import os
import pty
import select
import sys
import time

PATIENCE = 30  # seconds for one line, and for the start


class Shell:
    def __init__(self, name, script):
        words = {
            "bash": ["bash", "--norc", "--noprofile", "-i"],
            "zsh": ["zsh", "-f", "-i"],
        }[name]
        self.seen = b""
        process, self.terminal = pty.fork()
        if process == 0:
            os.environ.update(
                TERM="xterm", PS1="$ ", EDITOR="emacs", VISUAL="emacs", LC_ALL="C.UTF-8",
                HISTFILE="/dev/null", INPUTRC="/dev/null",
            )
            os.execvp(words[0], words)
        if name == "bash":
            self.type("bind 'set bell-style none'; bind 'set enable-bracketed-paste off'\n")
        else:
            self.type("unset zle_bracketed_paste; setopt no_beep no_auto_menu no_list_ambiguous "
                      "no_auto_remove_slash\n")
            self.type("autoload -U compinit; compinit -u -D; bindkey -e\n")
        self.type(f"source ./{script}\n")
        # In two halves, so that what is typed is not taken for what is printed.
        self.type("echo rea''dy-to-type\n")
        self.wait_for(b"ready-to-type\r\n")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def wait_for(self, end):
        until = time.monotonic() + PATIENCE
        while end not in self.seen:
            left = until - time.monotonic()
            ready, _, _ = select.select([self.terminal], [], [], max(left, 0))
            if not ready:
                raise TimeoutError(f"no {end!r} in {self.seen[-2000:]!r}")
            self.seen += os.read(self.terminal, 65536)
        found, _, self.seen = self.seen.partition(end)
        return found

    def completed(self, line, number):
        # Tab; then the start of the line, where the command that prints its words goes.
        self.type(line + "\t")
        self.type(f"\x01printf 'w<%s>\\n' beg''in{number} \x05 e''nd{number}\n")
        self.wait_for(f"w<begin{number}>\r\n".encode())
        printed = self.wait_for(f"w<end{number}>\r\n".encode()).decode()
        lines = printed.split("\r\n")
        return [word[2:-1] for word in lines if word.startswith("w<")]


def main():
    name, script, lines = sys.argv[1:]
    with open(lines, encoding="utf-8") as file:
        typed = json.load(file)
    shell = Shell(name, script)
    print(json.dumps([shell.completed(line, number) for number, line in enumerate(typed)]))


main()
