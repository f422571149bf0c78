# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Knows what its threads spend their CPU time on: multiply() and exponent() in one operator each, loop()
in Python alone, and a second thread in another operator. Three more threads wait: for time to pass,
for a pipe, for a lock.

    spend SECONDS   so much CPU time in each function; answers the CPU time that each took, in JSON
    pace SECONDS    so much CPU time in a thread that works for a moment, sleeps for a moment and so on; answers it
"""

import json
import os
import random
import threading
import time

import protocol
import torch

SIZE = 256
MATRIX = torch.ones(SIZE, SIZE) / SIZE
VECTOR = torch.ones(50000)


def multiply():
    for _ in range(4):
        torch.mm(MATRIX, MATRIX)


def exponent():
    for _ in range(20):
        torch.exp(VECTOR)


def loop():
    total = 0
    for number in range(20000):
        total += number
    return total


def tangent():
    for _ in range(20):
        torch.tanh(VECTOR)


def spend(functions, seconds):
    """CPU time of this thread in each function, at least so many seconds. One by chance, then the next: in turns, and where
    the scheduler gives a tick at a time, ticks would always find the same ones."""
    took = dict.fromkeys((function.__name__ for function in functions), 0.0)
    draw = random.Random(0)
    while min(took.values()) < seconds:
        function = draw.choice([one for one in functions if took[one.__name__] < seconds])
        begin = time.thread_time()
        function()
        took[function.__name__] += time.thread_time() - begin
    return took


def waits_for_time():
    while True:
        time.sleep(0.02)


def waits_for_pipe():
    os.read(os.pipe()[0], 1)


def waits_for_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def pace(seconds):
    """CPU time of this thread, at least so many seconds: each time that a timer wakes it a part of a millisecond."""
    begin = time.thread_time()
    while time.thread_time() - begin < seconds:
        time.sleep(0.001)
        until = time.thread_time() + 0.0004
        while time.thread_time() < until:
            pass
    return time.thread_time() - begin


class Sampled(protocol.Workload):
    """Spends known CPU time."""

    def __init__(self, args):
        super().__init__(args)
        self.tids = {}
        for function in (waits_for_time, waits_for_pipe, waits_for_lock):
            threading.Thread(target=self.thread, args=(function,), daemon=True).start()

    def thread(self, function):
        self.tids[function.__name__] = threading.get_native_id()
        function()

    def step(self):
        spend((multiply, exponent, loop, tangent), 0.001)

    def facts(self):
        return {"tids": self.tids}

    def command(self, words):
        if words[0] == "pace" and len(words) == 2:
            return str(pace(float(words[1])))
        if words[0] != "spend" or len(words) != 2:
            return None
        seconds, beside = float(words[1]), {}
        other = threading.Thread(target=lambda: beside.update(spend((tangent,), seconds)))
        other.start()
        took = spend((multiply, exponent, loop), seconds)
        other.join()
        return json.dumps({**took, **beside})


protocol.main(Sampled)
