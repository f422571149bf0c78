# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What userspace/collector/ says of CUPTI's binary interface beside what the headers of one version say: a C
program is written, compiled against both, and prints both numbers of each fact.

A field that a version's record does not have is no error where that record ends before the field:
the collector reads a field only if the record is long enough for it (HAS() in cupti_records.c).
"""

import collections
import os
import re
import subprocess

# What stands for a name of ours: struct -> (family of CUPTI's, first generation, {ours: theirs}).
# Several of theirs: an array of ours. Not named here are only what pads and what is reserved.
STRUCTS = {
    "cupti_record": ("CUpti_Activity", None, {"kind": "kind"}),
    "cupti_kernel": ("CUpti_ActivityKernel", 5, {
        "kind": "kind", "cache_config": "cacheConfig.both",
        "shared_memory_config": "sharedMemoryConfig",
        "registers_per_thread": "registersPerThread",
        "partitioned_requested": "partitionedGlobalCacheRequested",
        "partitioned_executed": "partitionedGlobalCacheExecuted",
        "start": "start", "end": "end", "completed": "completed", "device": "deviceId",
        "context": "contextId", "stream": "streamId", "grid": "gridX gridY gridZ",
        "block": "blockX blockY blockZ", "static_shared_bytes": "staticSharedMemory",
        "dynamic_shared_bytes": "dynamicSharedMemory",
        "local_bytes_per_thread": "localMemoryPerThread", "local_bytes": "localMemoryTotal",
        "correlation_id": "correlationId", "grid_id": "gridId", "name": "name",
        "queued": "queued", "submitted": "submitted", "launch_type": "launchType",
        "carveout_requested": "isSharedMemoryCarveoutRequested",
        "carveout": "sharedMemoryCarveoutRequested",
        "shared_executed": "sharedMemoryExecuted", "graph_node": "graphNodeId",
        "shared_limit": "shmemLimitConfig", "graph": "graphId"}),
    "cupti_copy": ("CUpti_ActivityMemcpy", 3, {
        "kind": "kind", "copy_kind": "copyKind", "src_kind": "srcKind", "dst_kind": "dstKind",
        "flags": "flags", "bytes": "bytes", "start": "start", "end": "end",
        "device": "deviceId", "context": "contextId", "stream": "streamId",
        "correlation_id": "correlationId", "runtime_correlation_id": "runtimeCorrelationId",
        "graph_node": "graphNodeId", "graph": "graphId"}),
    "cupti_peer_copy": ("CUpti_ActivityMemcpyPtoP", 2, {
        "kind": "kind", "copy_kind": "copyKind", "src_kind": "srcKind", "dst_kind": "dstKind",
        "flags": "flags", "bytes": "bytes", "start": "start", "end": "end",
        "device": "deviceId", "context": "contextId", "stream": "streamId",
        "src_device": "srcDeviceId", "src_context": "srcContextId",
        "dst_device": "dstDeviceId", "dst_context": "dstContextId",
        "correlation_id": "correlationId", "graph_node": "graphNodeId", "graph": "graphId"}),
    "cupti_set": ("CUpti_ActivityMemset", 2, {
        "kind": "kind", "value": "value", "bytes": "bytes", "start": "start", "end": "end",
        "device": "deviceId", "context": "contextId", "stream": "streamId",
        "correlation_id": "correlationId", "flags": "flags", "memory_kind": "memoryKind",
        "graph_node": "graphNodeId", "graph": "graphId"}),
    "cupti_api_call": ("CUpti_ActivityAPI", 1, {
        "kind": "kind", "cbid": "cbid", "start": "start", "end": "end", "process": "processId",
        "thread": "threadId", "correlation_id": "correlationId", "result": "returnValue"}),
    "cupti_sync": ("CUpti_ActivitySynchronization", 1, {
        "kind": "kind", "type": "type", "start": "start", "end": "end",
        "correlation_id": "correlationId", "context": "contextId", "stream": "streamId",
        "event": "cudaEventId", "record_id": "cudaEventSyncId"}),
    "cupti_event": ("CUpti_ActivityCudaEvent", 1, {
        "kind": "kind", "correlation_id": "correlationId", "context": "contextId",
        "stream": "streamId", "event": "eventId", "device": "deviceId",
        "device_time": "deviceTimestamp", "record_id": "cudaEventSyncId"}),
    "cupti_overhead": ("CUpti_ActivityOverhead", 1, {
        "kind": "kind", "what": "overheadKind", "object_kind": "objectKind",
        "process": "objectId.pt.processId", "thread": "objectId.pt.threadId", "start": "start",
        "end": "end"}),
    "cupti_callback_data": ("CUpti_CallbackData", None, {
        "site": "callbackSite", "function_name": "functionName"}),
}
PADDING = re.compile(r"(pad|padding|reserved)\d*$")

NUMBERS = {
    "CUPTI_OK": "CUPTI_SUCCESS",
    "CUPTI_PARAMETER": "CUPTI_ERROR_INVALID_PARAMETER",
    "CUPTI_LIMIT_REACHED": "CUPTI_ERROR_MAX_LIMIT_REACHED",
    "CUPTI_UNINITIALIZED": "CUPTI_ERROR_NOT_INITIALIZED",
    "CUPTI_UNSUPPORTED": "CUPTI_ERROR_NOT_SUPPORTED",
    "CUPTI_SECOND_SUBSCRIBER": "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
    "CUPTI_MEMCPY": "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_MEMSET": "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_DRIVER": "CUPTI_ACTIVITY_KIND_DRIVER",
    "CUPTI_RUNTIME": "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_KERNEL": "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
    "CUPTI_OVERHEAD": "CUPTI_ACTIVITY_KIND_OVERHEAD",
    "CUPTI_PEER_COPY": "CUPTI_ACTIVITY_KIND_MEMCPY2",
    "CUPTI_EVENT": "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
    "CUPTI_SYNC": "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "CUPTI_NO_VALUE": "(uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE",
    "CUPTI_OBJECT_THREAD": "CUPTI_ACTIVITY_OBJECT_THREAD",
    "CUPTI_DOMAIN_DRIVER": "CUPTI_CB_DOMAIN_DRIVER_API",
    "CUPTI_DOMAIN_RUNTIME": "CUPTI_CB_DOMAIN_RUNTIME_API",
    "CUPTI_SITE_ENTER": "CUPTI_API_ENTER",
    "CUPTI_SITE_EXIT": "CUPTI_API_EXIT",
    "CUPTI_THREAD_DEFAULT": "CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT",
    "CUPTI_THREAD_SYSTEM": "CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM",
    "CUPTI_FLUSH_COMPLETED": "0",
    "CUPTI_FLUSH_FORCED": "CUPTI_ACTIVITY_FLAG_FLUSH_FORCED",
}

# The functions' arguments, of our types: where one of another number or kind was asked for, this is no C.
FUNCTIONS = {
    "cuptiGetVersion": "(uint32_t *)0",
    "cuptiGetTimestamp": "(uint64_t *)0",
    "cuptiSubscribe": "(void *)0, (CUpti_CallbackFunc)0, (void *)0",
    "cuptiUnsubscribe": "(void *)0",
    "cuptiEnableDomain": "(uint32_t)1, (void *)0, (uint32_t)1",
    "cuptiActivityRegisterCallbacks":
        "(CUpti_BuffersCallbackRequestFunc)0, (CUpti_BuffersCallbackCompleteFunc)0",
    "cuptiActivityEnable": "(uint32_t)1",
    "cuptiActivityDisable": "(uint32_t)1",
    "cuptiActivityFlushAll": "(uint32_t)1",
    "cuptiActivityGetNextRecord": "(uint8_t *)0, (size_t)0, (void *)0",
    "cuptiActivityGetNumDroppedRecords": "(void *)0, (uint32_t)0, (size_t *)0",
    "cuptiGetCallbackName": "(uint32_t)1, (uint32_t)1, (const char **)0",
    "cuptiGetResultString": "0, (const char **)0",
    "cuptiGetThreadIdType": "(void *)0",
    "cuptiSetThreadIdType": "(uint32_t)1",
    "cuptiFinalize": "",
    "cuptiActivityEnableRuntimeApi": "(uint32_t)1, (uint8_t)1",
    "cuptiActivityEnableDriverApi": "(uint32_t)1, (uint8_t)1",
    "cuptiActivityEnableCudaEventDeviceTimestamps": "(uint8_t)1",
}
# Those that the collector does without where they are missing.
OPTIONAL = {"cuptiActivityEnableRuntimeApi", "cuptiActivityEnableDriverApi",
            "cuptiActivityEnableCudaEventDeviceTimestamps"}
# Function pointers of theirs that ours stand for, called with our arguments.
CALLBACKS = {
    "CUpti_BuffersCallbackRequestFunc": "(uint8_t **)0, (size_t *)0, (size_t *)0",
    "CUpti_BuffersCallbackCompleteFunc":
        "(void *)0, (uint32_t)0, (uint8_t *)0, (size_t)0, (size_t)0",
    "CUpti_CallbackFunc": "(void *)0, (uint32_t)0, (uint32_t)0, (const void *)0",
}
# Types of theirs for which ours is an int or uint32_t.
WORDS = ("CUptiResult", "CUpti_ActivityKind", "CUpti_CallbackDomain", "CUpti_CallbackId",
         "CUpti_ActivityThreadIdType", "CUpti_ApiCallbackSite")

INCLUDES = ("cupti_result.h", "cupti_version.h", "cupti_callbacks.h", "cupti_activity.h",
            "cupti_activity_deprecated.h", "cupti_driver_cbid.h", "cupti_runtime_cbid.h")

STAND_IN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")

Fact = collections.namedtuple("Fact", "what ours theirs")


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return without_comments(file.read())


class Headers:
    """The headers of one version of CUPTI, in a folder, and those of its CUDA."""

    def __init__(self, cupti, cuda):
        self.folders = [cupti, cuda, STAND_IN]
        # The deprecated records have a header of their own since CUDA 12.3.
        self.names = [name for name in INCLUDES if os.path.exists("%s/%s" % (cupti, name))]
        self.text = "".join(read("%s/%s" % (cupti, name)) for name in self.names)
        self.version = int(re.search(r"#define\s+CUPTI_API_VERSION\s+(\d+)", self.text).group(1))
        self.bodies = {}
        for body, name in re.findall(r"typedef\s+struct\s*\w*\s*\{(.*?)\}\s*(CUpti_\w+)\s*;",
                                     self.text, re.DOTALL):
            # A struct within it has brackets of its own: begin where the outermost begins.
            self.bodies[name] = body.rsplit("typedef", 1)[-1]

    def generations(self, family, first):
        """The names of a record's layouts, oldest first; the last is what this version writes."""
        if first is None:
            return [family]
        found = []
        for name in self.bodies:
            match = re.fullmatch(re.escape(family) + r"(\d*)", name)
            if match and int(match.group(1) or 1) >= first:
                found.append((int(match.group(1) or 1), name))
        return [name for _, name in sorted(found)]

    def has_field(self, struct, field):
        return re.search(r"\b%s\b" % field.split(".")[0], self.bodies[struct]) is not None


def our_structs(text):
    """struct -> its fields, as cupti_abi.h has them."""
    found = {}
    for name, body in re.findall(r"struct (?:CUPTI_RECORD )?(cupti_\w+) \{(.*?)\n\};", text, re.DOTALL):
        if name != "cupti_functions":
            found[name] = re.findall(r"(\w+)(?:\[\d+\])?;", body)
    return found


def our_functions(text):
    return re.findall(r"\(\*(cupti[A-Z]\w+)\)\(", text)


def our_numbers(text):
    """Enumerators, and what is defined as a number."""
    enums = "".join(re.findall(r"enum cupti_\w+ \{(.*?)\}", text, re.DOTALL))
    return re.findall(r"(CUPTI_\w+) =", enums) + re.findall(r"#define (CUPTI_NO_\w+)", text)


def filtered_calls(text):
    """(array, index, function) of every number in cupti_api_filter.h."""
    found = []
    for array, body in re.findall(r"(cupti_filtered_\w+)\[\] = \{(.*?)\n\};", text, re.DOTALL):
        for index, function in enumerate(re.findall(r"\d+,\s*/\* (\w+)", body)):
            found.append((array, index, function))
    return found


def uncovered(collector):
    """What the collector's headers have and this file does not compare."""
    with open(collector + "/cupti/cupti_abi.h", encoding="utf-8") as file:
        text = without_comments(file.read())
    missing = []
    for struct, fields in our_structs(text).items():
        known = STRUCTS.get(struct, (None, None, {}))[2]
        missing += ["%s.%s" % (struct, field) for field in fields
                    if field not in known and not PADDING.fullmatch(field)]
    missing += [name for name in our_numbers(text) if name not in NUMBERS]
    missing += [name for name in our_functions(text) if name not in FUNCTIONS]
    return missing


def struct_lines(headers):
    """C for every field in every layout; and, with no C, what has a layout at all."""
    lines, absent = [], []
    for ours, (family, first, fields) in STRUCTS.items():
        names = headers.generations(family, first)
        for theirs in names:
            for mine, others in fields.items():
                others = others.split()
                what = "%s.%s in %s" % (ours, mine, theirs)
                if first is not None and not headers.has_field(theirs, others[0]):
                    lines.append('ABSENT("%s", struct %s, %s, %s);' % (what, ours, mine, theirs))
                    absent.append(what)
                    continue
                for index, other in enumerate(others):
                    lines.append('OFFSET("%s", struct %s, %s, %d, %s, %s);' % (
                        what, ours, mine, index, theirs, other))
                lines.append('SIZE("%s", struct %s, %s, %d, %s, %s);' % (
                    what, ours, mine, len(others), theirs, others[0]))
    return lines, absent


def number_lines(headers, collector):
    lines = ['NUMBER("%s", %s, %s);' % (ours, ours, theirs) for ours, theirs in NUMBERS.items()]
    with open(collector + "/cupti/cupti_api_filter.h", encoding="utf-8") as file:
        for array, index, function in filtered_calls(file.read()):
            kind = "DRIVER" if "driver" in array else "RUNTIME"
            theirs = "CUPTI_%s_TRACE_CBID_%s" % (kind, function)
            match = re.search(r"\b%s(_v3020)?\b(?=\s*=)" % theirs, headers.text)
            # Newer than this version: its number was given to nothing before.
            if match:
                lines.append('NUMBER("%s", %s[%d], %s);' % (function, array, index, match.group(0)))
            else:
                size = "CUPTI_%s_TRACE_CBID_SIZE" % kind
                lines.append('UNKNOWN("%s", %s[%d], %s);' % (function, array, index, size))
    return lines


def call_lines(headers):
    lines = ['NUMBER("sizeof %s", 4, sizeof(%s));' % (name, name) for name in WORDS]
    for name, arguments in FUNCTIONS.items():
        if re.search(r"\b%s\s*\(" % name, headers.text):
            lines.append('NUMBER("%s", sizeof(int), sizeof(%s(%s)));' % (name, name, arguments))
    for name, arguments in CALLBACKS.items():
        lines.append("(void)sizeof(((%s)0)(%s), 0);" % (name, arguments))
    return lines


PROGRAM = """
#include <cuda.h>
%s
#include "collector/cupti/cupti_abi.h"
#include "collector/cupti/cupti_library.h"
#include "collector/cupti/cupti_api_filter.h"
#include <stdio.h>
#define SIZEOF(t, f) sizeof(((t *)0)->f)
#define SAY(what, ours, theirs) printf("%%s\\t%%lld\\t%%lld\\n", what, (long long)(ours), (long long)(theirs))
#define OFFSET(what, o, f, n, t, g) SAY("offset of " what, offsetof(o, f) + 4 * (n), offsetof(t, g))
#define SIZE(what, o, f, n, t, g) SAY("size of " what, SIZEOF(o, f) / (n), SIZEOF(t, g))
/* The record ends before the field, which is therefore not read. */
#define ABSENT(what, o, f, t) SAY("guard of " what, 1, sizeof(t) <= offsetof(o, f))
#define NUMBER(what, ours, theirs) SAY(what, ours, theirs)
#define UNKNOWN(what, ours, size) SAY("number not given yet to " what, 1, (ours) >= (size) - 1)
int main(void)
{
%s
	return 0;
}
"""


def facts(headers, collector, folder, cc):
    """The facts of one version, and how many of them are fields that only its length guards."""
    structs, absent = struct_lines(headers)
    lines = structs + number_lines(headers, collector) + call_lines(headers)
    source, binary = folder + "/abi.c", folder + "/abi"
    with open(source, "w", encoding="utf-8") as file:
        file.write(PROGRAM % ("\n".join("#include <%s>" % name for name in headers.names),
                              "\n".join("\t" + line for line in lines)))
    command = [cc, "-std=gnu11", "-Wall", "-Werror", "-Wno-unused-value", "-I", collector + "/..", "-o", binary,
               source]
    for include in headers.folders:
        command += ["-isystem", include]
    subprocess.run(command, check=True)
    said = subprocess.run([binary], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = []
    for line in said.splitlines():
        what, ours, theirs = line.split("\t")
        found.append(Fact(what, int(ours), int(theirs)))
    return found, absent
