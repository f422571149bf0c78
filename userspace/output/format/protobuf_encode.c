/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Encodes messages of protobuf-c into a buffer.
 */
#include "output/format/protobuf_encode.h"

#include <errno.h>
#include <protobuf-c/protobuf-c.h>

#include "base/banned.h"

struct appending {
	ProtobufCBuffer base;
	struct buf *out;
};

static void append(ProtobufCBuffer *buffer, size_t bytes, const uint8_t *data)
{
	buf__add(((struct appending *)buffer)->out, data, bytes);
}

void protobuf_encode(const void *message, struct buf *out)
{
	struct appending a = {.base = {.append = append}, .out = out};

	(void)protobuf_c_message_pack_to_buffer(message, &a.base);
}
