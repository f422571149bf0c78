/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Protocol buffers as bytes. Private to this room.
 */
#ifndef GP_OUTPUT_FORMAT_PROTOBUF_ENCODE_H
#define GP_OUTPUT_FORMAT_PROTOBUF_ENCODE_H

#include "base/buf.h"

/* Appends the bytes of a message (a ProtobufCMessage). */
void protobuf_encode(const void *message, struct buf *out);

#endif /* GP_OUTPUT_FORMAT_PROTOBUF_ENCODE_H */
