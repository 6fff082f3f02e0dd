"""A GTP engine that plays the first empty point. Its argument selects a misbehaviour, often at the third `genmove`."""

from __future__ import annotations

import os
import sys
import time

behaviour, genmoves, taken, size, seeds = sys.argv[1], 0, set(), 9, []


def first_empty() -> str:
    """Return the name of the first point that was not played."""
    names = [f"{file}{rank}" for rank in range(1, size + 1) for file in "ABCDEFGHJ"[:size]]
    return next(name for name in names if name not in taken)


if behaviour == "stillborn":
    sys.exit("no licence")
if behaviour == "chatty":
    print("Welcome!\n\nThis is a banner.", flush=True)
for line in sys.stdin:
    name, *words = line.split()
    answer = "="
    if name == "boardsize":
        size = int(words[0])
    elif name == "clear_board":
        taken.clear()
    elif name == "play":
        taken.add(words[1].upper())
        if behaviour == "refuse" and len(taken) > 3:
            answer = "? illegal move"
    elif name == "list_commands":
        answer = "= genmove\nplay\nset_random_seed"
    elif name == "set_random_seed":
        seeds.append(words[0])
        print(f"seed {words[0]}", file=sys.stderr, flush=True)
    elif name == "genmove":
        genmoves += 1
        answer = f"= {first_empty().lower()}"
        if genmoves == 3:
            if behaviour == "die":
                sys.exit("out of luck")
            elif behaviour == "hang":
                time.sleep(60)
            elif behaviour == "flood":
                sys.stdout.write("= no end\n" * 200_000)
            elif behaviour == "cut":
                sys.stdout.write("= A")
                break
            elif behaviour == "endless":
                while True:
                    sys.stdout.write("thinking ...\n" * 1000)
            elif behaviour == "close":
                os.close(1)
                time.sleep(60)
            answer = {"illegal": f"= {min(taken)}", "nonsense": "= Z99", "resign": "= resign", "fail": "? no"}.get(
                behaviour, answer
            )
        taken.add(answer[2:].upper())
    elif name == "quit":
        if behaviour == "stubborn":
            time.sleep(60)
        print("=\n", flush=True)
        break
    if behaviour == "noisy":
        print("?? noise\n\n=== more of it ===\n")
        sys.stderr.write("complaint\n" * 2_000 + "x" * 200_000)
        sys.stderr.flush()
    if behaviour == "slow":
        for letter in f"{answer}\n\n":
            sys.stdout.write(letter)
            sys.stdout.flush()
            time.sleep(0.001)
        continue
    if behaviour == "twice" and name == "genmove":
        print(f"{answer}\n")
    print(f"{answer}\n", flush=True)
