# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
usage: assumptions.py [QUESTION]. What the collector takes for granted about CUPTI, asked of the
CUPTI that is there, without gpuprof and without PyTorch: each question in a process of its own,
which may crash or hang without spoiling the others. Prints a line of JSON for each: question,
"holds" (null: cannot be asked here), what was found. CUDART and CUPTI name the libraries, else they
are looked for where Python packages and toolkits have them. FILL_BYTES: of one piece of work.
"""

import ctypes
import glob
import json
import os
import signal
import subprocess
import sys
import threading
import time

LIMIT_S = 40
MEMCPY, MEMSET, DRIVER, RUNTIME, KERNEL, OVERHEAD, PEER, EVENT, SYNC = 1, 2, 4, 5, 10, 17, 22, 36, 38
KINDS = (RUNTIME, DRIVER, KERNEL, MEMCPY, MEMSET, PEER, SYNC, OVERHEAD, EVENT)
LIMIT_REACHED = 12
# The shortest that the collector reads of each kind.
LEAST = {MEMCPY: 48, MEMSET: 52, DRIVER: 40, RUNTIME: 40, SYNC: 40, EVENT: 24}
OF_ANOTHER = (12, 39)  # what a second subscriber may be told
VERSION_SAFE = 24      # CUDA 12.6: from here on the collector calls cuptiFinalize()
TOO_OLD = "before CUDA 12.6 it is never taken down"
NOT_READY = 600
NO_GPU = (35, 100)     # no driver that will do, or no device
BUFFER = 1 << 20
COST_CALLS = 1000
FILL = int(os.environ.get("FILL_BYTES", 256 << 20))

Request = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t),
                           ctypes.POINTER(ctypes.c_size_t))
Complete = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p,
                            ctypes.c_size_t, ctypes.c_size_t)
Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32,
                            ctypes.POINTER(ctypes.c_uint32))


def find(variable, stem):
    """The library's path."""
    if os.environ.get(variable):
        return os.environ[variable]
    folders = [folder for path in sys.path
               for folder in (path + "/nvidia/*/lib", path + "/torch/lib")]
    folders += ["/usr/local/cuda*/lib64", "/usr/local/cuda*/extras/CUPTI/lib64",
                sys.prefix + "/lib", "/usr/lib/x86_64-linux-gnu"]
    for folder in folders:
        for path in sorted(glob.glob("%s/%s*" % (folder, stem)), key=len):
            if path[-1].isdigit():
                return path
    raise LookupError("there is no %s; %s may name it" % (stem, variable))


class NoGpu(Exception):
    """Nothing can be asked here."""


class Cuda:
    """The runtime, with work that needs no kernel of ours."""

    def __init__(self):
        self.lib = ctypes.CDLL(find("CUDART", "libcudart.so."))
        self.memory, self.stream = ctypes.c_void_p(), ctypes.c_void_p()

    def call(self, name, *args):
        result = getattr(self.lib, name)(*args)
        if result in NO_GPU:
            raise NoGpu("%s: error %d" % (name, result))
        assert not result, "%s: error %d" % (name, result)

    def begin(self):
        self.call("cudaMalloc", ctypes.byref(self.memory), ctypes.c_size_t(FILL))
        self.call("cudaStreamCreate", ctypes.byref(self.stream))
        self.work(1)

    def fill(self):
        self.call("cudaMemsetAsync", self.memory, 0, ctypes.c_size_t(FILL), self.stream)

    def wait(self):
        self.call("cudaStreamSynchronize", self.stream)

    def work(self, number):
        for _ in range(number):
            self.fill()
        self.wait()

    def graph(self, nodes):
        """Something that launches a graph of so many nodes."""
        graph, instance = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cudaStreamBeginCapture", self.stream, 0)
        for _ in range(nodes):
            self.fill()
        self.call("cudaStreamEndCapture", self.stream, ctypes.byref(graph))
        self.call("cudaGraphInstantiate", ctypes.byref(instance), graph, ctypes.c_ulonglong(0))

        def launch():
            self.call("cudaGraphLaunch", instance, self.stream)
            self.wait()

        return launch


class Cupti:
    """CUPTI, used as the collector uses it."""

    def __init__(self):
        self.lib = ctypes.CDLL(find("CUPTI", "libcupti.so."))
        self.subscriber = ctypes.c_void_p()
        self.buffers, self.records = {}, []
        self.down, self.is_down = threading.Event(), threading.Event()
        self.owner = None  # the thread in whose call it is done; None: any
        # Kept: CUPTI calls them for as long as the process lives.
        self.keep = (Request(self._request), Complete(self._complete), Callback(self._callback))

    def result(self, name, *args):
        return getattr(self.lib, name)(*args)

    def call(self, name, *args):
        result = self.result(name, *args)
        assert not result, "%s: error %d" % (name, result)

    def version(self):
        version = ctypes.c_uint32()
        self.call("cuptiGetVersion", ctypes.byref(version))
        return version.value

    def now(self):
        now = ctypes.c_uint64()
        return now.value if self.result("cuptiGetTimestamp", ctypes.byref(now)) == 0 else None

    def _request(self, buffer, size, records):
        memory = ctypes.create_string_buffer(BUFFER + 8)
        address = (ctypes.addressof(memory) + 7) & ~7
        self.buffers[address] = memory
        buffer[0], size[0], records[0] = address, BUFFER, 0

    def _complete(self, _context, _stream, buffer, _size, valid):
        record, starts = ctypes.c_void_p(), []
        while valid and not self.result("cuptiActivityGetNextRecord", ctypes.c_void_p(buffer),
                                        ctypes.c_size_t(valid), ctypes.byref(record)):
            starts.append(record.value)
        for start, end in zip(starts, starts[1:] + [buffer + valid]):
            self.records.append(ctypes.string_at(start, end - start))

    def _callback(self, _arg, _domain, _cbid, data):
        if self.owner not in (None, threading.get_native_id()):
            return
        if data[0] == 1 and self.down.is_set() and not self.is_down.is_set():
            self.is_down.set()
            self.call("cuptiUnsubscribe", self.subscriber)
            self.call("cuptiFinalize")

    def subscribe(self):
        self.call("cuptiSubscribe", ctypes.byref(self.subscriber), self.keep[2], None)
        self.call("cuptiSetThreadIdType", 1)
        self.call("cuptiActivityRegisterCallbacks", *self.keep[:2])

    def enable(self, kinds=KINDS):
        return {kind: self.result("cuptiActivityEnable", kind) for kind in kinds}

    def flush(self):
        self.call("cuptiActivityFlushAll", 0)

    def take_down(self):
        """As the collector leaves: at the exit of a call of CUDA."""
        for kind in KINDS:
            self.result("cuptiActivityDisable", kind)
        self.flush()
        self.down.set()
        for domain in (1, 2):
            self.call("cuptiEnableDomain", 1, self.subscriber, domain)

    def take_down_by_own_call(self, names=("cuDriverGetVersion",)):
        """The same in calls of our own; how long it took in s, and by which it was done."""
        driver, number = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64()
        self.down.clear()
        self.is_down.clear()
        self.owner = threading.get_native_id()
        self.take_down()
        begin = time.monotonic()
        for name in names:
            getattr(driver, name, lambda _: None)(ctypes.byref(number))
            if self.is_down.is_set():
                return time.monotonic() - begin, name
        return time.monotonic() - begin, None

    def of(self, kind):
        return [record for record in self.records if word(record, 0) == kind]


def word(record, at, size=4):
    return int.from_bytes(record[at:at + size], "little")


def started():
    cuda = Cuda()
    cuda.begin()
    return cuda, Cupti()


# ---- the questions: each returns whether it holds (None: cannot be asked), and what was found ----


def versions():
    """A version whose records are known."""
    version = Cupti().version()
    return 13 <= version < 140000, {"cupti": version, "cupti path": find("CUPTI", "libcupti.so."),
                                    "runtime path": find("CUDART", "libcudart.so.")}


def late():
    """Records of a process whose CUDA was in use before: each kind can be had, each memset comes
    once, with the id of the call that asked for it, which names our thread by its system id."""
    cuda, cupti = started()
    cupti.subscribe()
    results = cupti.enable()
    cuda.work(3)
    cupti.flush()
    fills = {word(record, 44) for record in cupti.of(MEMSET)}
    calls = {word(record, 32): word(record, 28) for record in cupti.of(RUNTIME)}
    found = {"results": results, "memsets": len(cupti.of(MEMSET)), "calls": len(calls),
             "threads": sorted(set(calls.values())), "own": threading.get_native_id()}
    return (not any(results[kind] for kind in KINDS if kind != EVENT) and len(fills) == 3
            and all(calls.get(one) == threading.get_native_id() for one in fills)), found


def sizes():
    """No record is shorter than what is read of it, and times are there."""
    cuda, cupti = started()
    cupti.subscribe()
    cupti.enable()
    cuda.work(3)
    cupti.flush()
    seen = {}
    for record in cupti.records:
        seen.setdefault(word(record, 0), set()).add(len(record))
    timed = all(0 < word(record, 16, 8) <= word(record, 24, 8) for record in cupti.of(MEMSET))
    return (MEMSET in seen and timed
            and all(min(seen[kind]) >= least for kind, least in LEAST.items() if kind in seen)), {
                "bytes by kind": {kind: sorted(one) for kind, one in sorted(seen.items())},
                "memsets have times": timed}


def clock():
    """Once CUDA works, CUPTI's clock goes like ours; whether it was another before is told."""
    cupti, cuda = Cupti(), Cuda()

    def offset():
        best = None
        for _ in range(20):
            before, now, after = time.monotonic_ns(), cupti.now(), time.monotonic_ns()
            if now and (best is None or after - before < best[0]):
                best = (after - before, now - (before + after) // 2)
        return best

    seen = {"before CUDA": offset()}
    cuda.begin()
    first = offset()
    cupti.subscribe()
    cupti.enable()
    cuda.work(3)
    time.sleep(0.3)
    seen.update({"after": first, "0.3 s later": offset(),
                 "real time less monotonic": time.time_ns() - time.monotonic_ns()})
    last = seen["0.3 s later"]
    if seen["before CUDA"]:
        seen["set by"] = first[1] - seen["before CUDA"][1]
    return bool(first and last and abs(first[1] - last[1]) < 1000000), seen


def records_on_clock():
    """A memset lies between readings of CUPTI's clock before its call and after its end."""
    cuda, cupti = started()
    cupti.subscribe()
    cupti.enable()
    cuda.work(1)
    before = cupti.now()
    cuda.work(1)
    after = cupti.now()
    cupti.flush()
    last = max(cupti.of(MEMSET), key=lambda record: word(record, 16, 8), default=None)
    if last is None:
        return False, "no memset"
    start, end = word(last, 16, 8), word(last, 24, 8)
    return before - 100000 <= start <= end <= after + 100000, {
        "start after begin": start - before, "end before end": after - end}


def second_subscriber():
    """Is told that there is one."""
    _, cupti = started()
    cupti.subscribe()
    result = cupti.result("cuptiSubscribe", ctypes.byref(ctypes.c_void_p()), cupti.keep[2], None)
    return result in OF_ANOTHER, {"result": result}


def flush_waits():
    """A flush does not wait for work that is not done."""
    cuda, cupti = started()
    cupti.subscribe()
    cupti.enable()
    for _ in range(2000):
        cuda.fill()
    begin = time.monotonic()
    cupti.flush()
    took = time.monotonic() - begin
    query = cuda.lib.cudaStreamQuery(cuda.stream) if hasattr(cuda.lib, "cudaStreamQuery") else None
    cuda.wait()
    all_of_it = time.monotonic() - begin
    found = {"flush ms": round(1000 * took, 3), "work ms": round(1000 * all_of_it, 3)}
    return (None if query is None else query == NOT_READY), found


def events():
    """Waiting for an event tells which record of it is meant."""
    cuda, cupti = started()
    event = ctypes.c_void_p()
    cuda.call("cudaEventCreate", ctypes.byref(event))
    cupti.subscribe()
    results = cupti.enable()
    for _ in range(2):
        cuda.fill()
        cuda.call("cudaEventRecord", event, cuda.stream)
    cuda.call("cudaStreamWaitEvent", cuda.stream, event, 0)
    cuda.call("cudaEventSynchronize", event)
    cuda.wait()
    cupti.flush()
    told = [(word(record, 4), word(record, 12), word(record, 16)) for record in cupti.of(EVENT)]
    syncs = [(word(record, 4), word(record, 36)) for record in cupti.of(SYNC)]
    ids = [word(record, 48, 8) for record in cupti.of(EVENT) if len(record) >= 56]
    meant = [word(record, 40, 8) for record in cupti.of(SYNC)
             if len(record) >= 48 and word(record, 4) in (1, 2)]
    waits = [one for one in syncs if one[0] in (1, 2)]
    found = {"enabled": results[EVENT], "records (correlation, stream, event)": told,
             "syncs (type, event)": syncs, "ids of records": ids, "ids of syncs": meant}
    return (len(told) == 2 and bool(waits) and {one[1] for one in waits} == {told[0][2]}
            and (not meant or set(meant) <= set(ids))), found


def late_graph():
    """A graph from before the first subscriber can be launched after, and tells of its nodes."""
    cuda, cupti = started()
    launch = cuda.graph(3)
    launch()
    cupti.subscribe()
    cupti.enable()
    launch()
    launch()
    cupti.flush()
    nodes = [word(record, 64, 8) for record in cupti.records
             if word(record, 0) in (MEMSET, MEMCPY) and len(record) >= 72]
    nodes += [word(record, 144, 8) for record in cupti.of(KERNEL) if len(record) >= 152]
    return len(nodes) == 6 and len(set(nodes) - {0}) == 3, {"nodes": nodes}


def down_and_up():
    """CUPTI can be taken down at the exit of a call, with a graph there, and comes back."""
    cuda, cupti = started()
    if cupti.version() < VERSION_SAFE:
        return None, TOO_OLD
    launch = cuda.graph(3)
    rounds = []
    for _ in range(3):
        cupti.down.clear()
        cupti.is_down.clear()
        cupti.records.clear()
        cupti.subscribe()
        cupti.enable()
        launch()
        cuda.work(2)
        cupti.flush()
        rounds.append(len(cupti.of(MEMSET)) + len(cupti.of(KERNEL)))
        cupti.take_down()
        cuda.work(1)
        assert cupti.is_down.wait(5), "no callback at the exit of a call"
        launch()
    return rounds == [5, 5, 5], {"memsets a round": rounds}


def unsubscribed_and_up():
    """CUPTI that was only let go comes back too."""
    cuda, cupti = started()
    rounds = []
    for _ in range(3):
        cupti.records.clear()
        cupti.subscribe()
        cupti.enable()
        cuda.work(2)
        for kind in KINDS:
            cupti.result("cuptiActivityDisable", kind)
        cupti.flush()
        rounds.append(len(cupti.of(MEMSET)))
        cupti.call("cuptiUnsubscribe", cupti.subscriber)
        cuda.work(1)
    return rounds == [2, 2, 2], {"memsets a round": rounds}


def fork():
    """A child that leaves CUDA alone ends, and the parent's records go on."""
    cuda, cupti = started()
    cupti.subscribe()
    cupti.enable()
    child = os.fork()
    if not child:
        os._exit(7)
    status = os.waitpid(child, 0)[1]
    cuda.work(2)
    cupti.flush()
    return os.WEXITSTATUS(status) == 7 and len(cupti.of(MEMSET)) == 2, {
        "status": status, "memsets": len(cupti.of(MEMSET))}


def costs():
    """What a call takes without CUPTI, with it, once it was let go of, and once it was taken down: why
    it is taken down. Told, and no more."""
    cuda, cupti = started()

    def took():
        times = []
        for _ in range(9):
            begin = time.perf_counter_ns()
            for _ in range(COST_CALLS):
                cuda.call("cudaMemsetAsync", cuda.memory, 0, ctypes.c_size_t(64), cuda.stream)
            cuda.wait()
            times.append((time.perf_counter_ns() - begin) // COST_CALLS)
        return sorted(times)[4]

    took()
    found = {"plain": took()}
    cupti.subscribe()
    cupti.enable()
    found["attached"] = took()
    for kind in KINDS:
        cupti.result("cuptiActivityDisable", kind)
    cupti.flush()
    cupti.call("cuptiUnsubscribe", cupti.subscriber)
    found["let go of"] = took()
    cupti.subscribe()
    if cupti.version() >= VERSION_SAFE:
        cupti.take_down()
        took()
        found["taken down"] = took()
    return True, {"ns a call": found}


OWN_CALLS = ("cuDriverGetVersion", "cuDeviceGetCount", "cuCtxGetCurrent")


def own_call():
    """Calls of a thread that has no context are told of, and CUPTI can be taken down in each."""
    cuda, cupti = started()
    if cupti.version() < VERSION_SAFE:
        return None, TOO_OLD
    found = {}
    for name in OWN_CALLS:
        cupti.records.clear()
        cupti.subscribe()
        cupti.enable()
        cuda.work(2)
        cupti.flush()
        by = []
        thread = threading.Thread(target=lambda name=name, by=by: by.append(
            cupti.take_down_by_own_call((name,))))
        thread.start()
        thread.join()
        cuda.work(1)
        found[name] = (len(cupti.of(MEMSET)), by[0][1] if by else None)
        if not cupti.is_down.is_set():
            cupti.call("cuptiUnsubscribe", cupti.subscriber)
    return found[OWN_CALLS[0]] == (2, OWN_CALLS[0]), found


def down_beside(other, rounds):
    """CUPTI is taken down in a call of ours while `other` goes on, on another thread: how long that
    took each time, and how long the other's rounds, and a third's, which asks for nothing but whether
    its stream is done."""
    cuda, cupti = started()
    if cupti.version() < VERSION_SAFE:
        return None, TOO_OLD
    stop, others, thirds = threading.Event(), [], []
    stream = ctypes.c_void_p()
    cuda.call("cudaStreamCreate", ctypes.byref(stream))

    def go_on():
        while not stop.is_set():
            begin = time.monotonic()
            other(cuda)
            others.append(time.monotonic() - begin)

    def ask_on():
        while not stop.is_set():
            begin = time.monotonic()
            getattr(cuda.lib, "cudaStreamQuery", lambda _: None)(stream)
            thirds.append(time.monotonic() - begin)
            time.sleep(0.005)

    thread, third = threading.Thread(target=go_on), threading.Thread(target=ask_on)
    thread.start()
    third.start()
    took, seen = [], []
    try:
        for index in range(rounds):
            cupti.records.clear()
            cupti.subscribe()
            cupti.enable()
            time.sleep(0.05 + 0.003 * (index % 17))
            took.append(cupti.take_down_by_own_call(OWN_CALLS)[0])
            time.sleep(0.02)
            seen.append(cupti.is_down.is_set())
    finally:
        stop.set()
        thread.join()
        third.join()
    return all(seen), {"rounds": len(seen), "ms to take it down": [
        round(1000 * one, 2) for one in (min(took), sorted(took)[len(took) // 2], max(took))],
        "other's ms": [round(1000 * one, 2) for one in (min(others), max(others))],
        "a third's, which asks": [round(1000 * one, 2) for one in (
            min(thirds), sorted(thirds)[len(thirds) // 2], max(thirds))]}


def down_beside_calls():
    """While another thread calls CUDA without end."""
    def other(cuda):
        for _ in range(50):
            cuda.call("cudaMemsetAsync", cuda.memory, 0, ctypes.c_size_t(64), cuda.stream)
        cuda.wait()

    return down_beside(other, 40)


def down_beside_wait():
    """While another thread waits for the GPU, within a call."""
    large, memory = ctypes.c_size_t(32 * FILL), ctypes.c_void_p()

    def other(cuda):
        if not memory:
            cuda.call("cudaMalloc", ctypes.byref(memory), large)
        for _ in range(400):
            cuda.call("cudaMemsetAsync", memory, 0, large, cuda.stream)
        cuda.wait()

    return down_beside(other, 6)


QUESTIONS = {one.__name__: one for one in (
    versions, late, sizes, clock, records_on_clock, second_subscriber, events, late_graph,
    down_and_up, unsubscribed_and_up, flush_waits, fork, costs,
    own_call, down_beside_calls, down_beside_wait)}


def answer(name):
    try:
        holds, found = QUESTIONS[name]()
    except NoGpu as error:
        holds, found = None, "no GPU here: %s" % error
    except Exception as error:  # an answer too
        holds, found = False, repr(error)
    print(json.dumps({"question": name, "holds": holds, "found": found}), flush=True)
    # What CUDA and CUPTI do at the end of a process is another matter.
    os._exit(0)


def ask(name, limit_s=LIMIT_S):
    """One question in a process of its own."""
    asked = {"question": name, "holds": False}
    limit_s = min(limit_s, LIMIT_S)
    try:
        done = subprocess.run([sys.executable, "-B", os.path.abspath(__file__), name], check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=limit_s)
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode(errors="replace")[-500:]
        return dict(asked, found="no answer within %d s: %s" % (limit_s, said))
    said = done.stdout.decode(errors="replace")
    for line in reversed(said.splitlines()):
        if line.startswith('{"question"'):
            return json.loads(line)
    if done.returncode < 0:
        said += " (%s)" % signal.Signals(-done.returncode).name
    return dict(asked, found="ended with status %d: %s" % (done.returncode, said[-500:]))


def main():
    if len(sys.argv) > 1:
        answer(sys.argv[1])
    for name in QUESTIONS:
        print(json.dumps(ask(name)), flush=True)


if __name__ == "__main__":
    main()
