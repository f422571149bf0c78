/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finding, mapping and draining the collector's ring. `tail` is gpuprof's own word and never read
 * back from the page; `head` is read once per drain and trusted only as far as the ring is long.
 * What was read is cleared before it is given back: writers rely on that.
 */
#include "capture/collector/ring_reader.h"

#include "base/cleanup.h"
#include "base/shared_mapping.h"
#include "base/thread.h"
#include "capture/collector/events.h"
#include "common/clock.h"
#include "common/saturating.h"
#include "inspect/access/process_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define PAGE_BYTES	   4096
#define DATA_BYTES_MIN	   4096U
#define DATA_BYTES_MAX	   (256U << 20)
#define STALL_BEATS	   30 /* turns of the collector's thread, 0.1 s each */
#define PUBLISH_BYTES	   65536
#define BEAT_NS		   200000000L
#define FRESH_NS	   1500000000ULL /* a reader that lives beats more often */
#define DRAIN_DEADLINE_MIN 1000000ULL	 /* ns */

struct ring_reader {
	struct shared_mapping *mapping; /* of all that follows */
	struct gp_ring_page *page;
	unsigned char *data;
	uint32_t data_bytes;
	uint64_t tail;
	uint64_t published; /* the tail that writers know */
	bool broken;
	bool gone;
	bool stalled;	       /* the slot at `tail` was not ready when last looked at, */
	uint32_t stalled_beat; /* and so was the collector's beat */
	uint64_t skipped_nr;
	uint64_t lost_before; /* that nobody wanted */
	uint64_t drained_ns;  /* when it was drained last, 0: not yet */
	uint64_t drain_deadline_ns;
	bool beating, leaving; /* of the thread that beats */
	pthread_t beater;
	pthread_mutex_t lock;
	pthread_cond_t leave;
	struct collector_events events;
};

#define LINK_BYTES_MAX 128 /* of a descriptor's, if it is a ring's */

static bool is_ring_size(uint64_t bytes)
{
	uint64_t data_bytes = bytes - PAGE_BYTES;

	return bytes >= PAGE_BYTES + DATA_BYTES_MIN && data_bytes <= DATA_BYTES_MAX &&
	       !(data_bytes & (data_bytes - 1));
}

static bool is_ring(const char *name, const void *arg)
{
	return !strcmp(name, GP_RING_NAME);
}

/* Opens the ring behind a descriptor of the process. A memory file must not be able to shrink, and
 * its size is looked at only once a seal forbids that: until then its owner may cut it. A file that
 * the collector had to make instead can be cut any time, which the mapping survives. */
static int open_ring(pid_t pid, const char *number, uint64_t *ret_bytes)
{
	enum process_made made;
	struct stat st;
	CLEANUP(cleanup_fd)
	int fd = process_made_file_open(pid, number, PROCESS_MADE_IN_TMPFS, is_ring, NULL, &st,
					&made);
	int seals;

	if (fd < 0)
		return fd;
	seals = made == PROCESS_MADE_IN_MEMORY ? fcntl(fd, F_GET_SEALS) : F_SEAL_SHRINK;
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || (seals & F_SEAL_WRITE))
		return -EPROTO;
	if (fstat(fd, &st))
		return -errno;
	if (!is_ring_size((uint64_t)st.st_size))
		return -EPROTO;
	*ret_bytes = (uint64_t)st.st_size;
	return take_fd(&fd);
}

/* Maps the ring behind `fd`, of a size that is_ring_size(), if its header makes sense. 0 or -errno.
 */
static int map_ring(struct ring_reader *r, int fd, uint64_t bytes, struct reason *why)
{
	uint64_t data_bytes = bytes - PAGE_BYTES;
	struct gp_ring_page *page;
	int err;

	err = shared_mapping__new(fd, bytes, &r->mapping);
	if (err)
		return reason_set(why, err, "cannot map the collector's ring: %s", strerror(-err));
	r->page = page = shared_mapping__memory(r->mapping);
	r->data = (unsigned char *)page + PAGE_BYTES;
	r->data_bytes = (uint32_t)data_bytes;
	if (__atomic_load_n(&page->magic, __ATOMIC_ACQUIRE) != GP_RING_MAGIC ||
	    page->data_bytes != data_bytes)
		return reason_set(why, -EPROTO,
				  "the collector's ring has a header of another kind");
	if (page->wire_version != GP_WIRE_VERSION)
		return reason_set(why, -EPROTO,
				  "the collector in the process is of another version of gpuprof; "
				  "restart the process or use that version");
	return 0;
}

/* A ring that someone else reads, or has read, is not ours to read. */
static int check_unused(const struct gp_ring_page *page, struct reason *why)
{
	uint64_t beat_ns = __atomic_load_n(&page->heartbeat_ns, __ATOMIC_RELAXED);
	uint64_t now = clock_now_ns();

	if (!beat_ns)
		return 0;
	if (beat_ns <= now && now - beat_ns > FRESH_NS)
		return reason_set(why, -EAGAIN,
				  "the collector of an earlier capture is still leaving the "
				  "process; try again in some seconds");
	return reason_set(why, -EBUSY, "another gpuprof is attached to the process");
}

/* The first descriptor of the process that is a ring, as a descriptor of ours. */
static int find_ring(pid_t pid, uint64_t *ret_bytes)
{
	char path[64], name[LINK_BYTES_MAX];
	struct dirent *entry;
	int found = -ENOENT;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	CLEANUP(cleanup_dir) DIR *dir = opendir(path);

	if (!dir)
		return -errno;
	while (found < 0 && (entry = readdir(dir)) != NULL) {
		ssize_t nr = readlinkat(dirfd(dir), entry->d_name, name, sizeof(name));

		if (nr > 0 && memmem(name, (size_t)nr, GP_RING_NAME, sizeof(GP_RING_NAME) - 1))
			found = open_ring(pid, entry->d_name, ret_bytes);
	}
	return found;
}

void ring_reader__beat(struct ring_reader *r)
{
	__atomic_store_n(&r->page->heartbeat_ns, clock_now_ns(), __ATOMIC_RELAXED);
}

/* Says that gpuprof is alive whatever the rest of it waits for (a slow disk). */
static void *keep_beating(void *arg)
{
	struct ring_reader *r = arg;
	struct timespec until;

	(void)pthread_mutex_lock(&r->lock);
	while (!r->leaving) {
		ring_reader__beat(r);
		(void)clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += BEAT_NS;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		(void)pthread_cond_timedwait(&r->leave, &r->lock, &until);
	}
	(void)pthread_mutex_unlock(&r->lock);
	return NULL;
}

static void start_beating(struct ring_reader *r)
{
	pthread_condattr_t attr;

	if (r->beating || pthread_condattr_init(&attr))
		return;
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&r->leave, &attr);
	(void)pthread_condattr_destroy(&attr);
	(void)pthread_mutex_init(&r->lock, NULL);
	r->beating = !thread_start(&r->beater, "gp-beat", keep_beating, r);
}

static void stop_beating(struct ring_reader *r)
{
	if (!r->beating)
		return;
	(void)pthread_mutex_lock(&r->lock);
	r->leaving = true;
	(void)pthread_cond_signal(&r->leave);
	(void)pthread_mutex_unlock(&r->lock);
	(void)pthread_join(r->beater, NULL);
	(void)pthread_cond_destroy(&r->leave);
	(void)pthread_mutex_destroy(&r->lock);
}

int ring_reader__open(pid_t pid, uint16_t process_index, struct reason *why,
		      struct ring_reader **ret_ring)
{
	struct ring_reader *r;
	uint64_t bytes = 0;
	int err;
	CLEANUP(cleanup_fd) int fd = find_ring(pid, &bytes);

	if (fd == -ENOENT)
		return reason_set(why, fd, "there is no collector in process %d", pid);
	if (fd < 0)
		return reason_set(why, fd, "cannot open the collector's ring of process %d: %s",
				  pid, strerror(-fd));
	r = calloc(1, sizeof(*r));
	if (!r)
		return reason_set(why, -ENOMEM, "out of memory");
	collector_events__init(&r->events, pid, process_index);
	err = map_ring(r, fd, bytes, why);
	if (!err)
		err = check_unused(r->page, why);
	if (err) {
		ring_reader__free(r);
		return err;
	}
	__atomic_store_n(&r->page->process, process_index, __ATOMIC_RELAXED);
	ring_reader__beat(r);
	*ret_ring = r;
	return 0;
}

void ring_reader__free(struct ring_reader *r)
{
	if (!r)
		return;
	stop_beating(r);
	shared_mapping__free(r->mapping);
	collector_events__done(&r->events);
	free(r);
}

static void wake(struct ring_reader *r)
{
	(void)syscall(SYS_futex, &r->page->wanted, FUTEX_WAKE, 1, NULL, NULL, 0);
}

uint64_t ring_reader__stack_cache(const struct ring_reader *r)
{
	uint64_t address = r->page->stack_tops;

	return address % 8 ? 0 : address;
}

void ring_reader__set_python(struct ring_reader *r, const struct gp_python *python)
{
	r->page->python = *python;
}

void ring_reader__take_any_cupti(struct ring_reader *r)
{
	r->page->any_cupti = 1;
}

void ring_reader__want(struct ring_reader *r, uint32_t features)
{
	start_beating(r);
	__atomic_store_n(&r->page->wanted, features, __ATOMIC_RELEASE);
	wake(r);
}

void ring_reader__quit(struct ring_reader *r)
{
	__atomic_store_n(&r->page->quit, 1, __ATOMIC_RELEASE);
	wake(r);
}

void ring_reader__process_gone(struct ring_reader *r)
{
	r->gone = true;
}

static struct gp_ring_slot read_slot(const struct ring_reader *r, uint64_t position)
{
	const struct gp_ring_slot *slot =
		(const void *)(r->data + (position & (r->data_bytes - 1)));
	struct gp_ring_slot copy;

	copy.ready = __atomic_load_n(&slot->ready, __ATOMIC_ACQUIRE);
	copy.bytes = __atomic_load_n(&slot->bytes, __ATOMIC_RELAXED);
	return copy;
}

static bool size_is_sane(const struct gp_ring_slot *slot, uint64_t room)
{
	return slot->bytes % 8 == 0 && slot->bytes <= room &&
	       slot->bytes >= sizeof(*slot) + sizeof(struct gp_ev_head) &&
	       slot->bytes <= sizeof(*slot) + GP_RING_EVENT_BYTES;
}

static bool is_ready(const struct gp_ring_slot *slot, uint64_t position, uint64_t room)
{
	return slot->ready == (uint32_t)position + 1 && size_is_sane(slot, room);
}

static void copy_out(const struct ring_reader *r, uint64_t position, void *to, size_t bytes)
{
	size_t at = position & (r->data_bytes - 1);
	size_t first = r->data_bytes - at < bytes ? r->data_bytes - at : bytes;

	memcpy(to, r->data + at, first);
	memcpy((char *)to + first, r->data, bytes - first);
}

/* Lets writers have what was read. */
static void publish(struct ring_reader *r)
{
	/* Release: the room is clear before a writer may have it. */
	__atomic_store_n(&r->page->tail, r->tail, __ATOMIC_RELEASE);
	r->published = r->tail;
}

/* Clears [tail, to) and moves tail there. */
static void give_back(struct ring_reader *r, uint64_t to)
{
	size_t at = r->tail & (r->data_bytes - 1);
	size_t bytes = to - r->tail;
	size_t first = r->data_bytes - at < bytes ? r->data_bytes - at : bytes;

	memset(r->data + at, 0, first);
	memset(r->data, 0, bytes - first);
	r->tail = to;
	r->stalled = false;
	if (r->tail - r->published >= PUBLISH_BYTES)
		publish(r);
}

/*
 * The slot at tail is not ready. True if it never will be: nobody is left to complete it, or the
 * collector's own thread has made many turns since we first saw it (so the process runs).
 */
static bool slot_is_dead(struct ring_reader *r)
{
	uint32_t beat = __atomic_load_n(&r->page->beat, __ATOMIC_RELAXED);
	uint32_t state = __atomic_load_n(&r->page->state, __ATOMIC_ACQUIRE);

	if (!r->stalled) {
		r->stalled = true;
		r->stalled_beat = beat;
	}
	return r->gone || state == GP_COLLECTOR_INERT || beat - r->stalled_beat >= STALL_BEATS;
}

/* Goes on at the next slot that is complete, else at head. */
static void skip_dead(struct ring_reader *r, uint64_t head)
{
	struct gp_ring_slot slot = read_slot(r, r->tail);
	uint64_t to = r->tail + 8;

	if (size_is_sane(&slot, head - r->tail)) {
		to = r->tail + slot.bytes;
	} else {
		for (; to < head; to += 8) {
			slot = read_slot(r, to);
			if (is_ready(&slot, to, head - to))
				break;
		}
	}
	give_back(r, to);
	r->skipped_nr++;
}

/* By how much has come since the last time. It grows no faster than time goes: work pauses, and
 * goes on. */
static void set_drain_deadline(struct ring_reader *r, uint64_t waiting_bytes)
{
	uint64_t now = clock_now_ns(), past_ns = now - r->drained_ns,
		 most = r->drain_deadline_ns + past_ns;
	double ns = (double)past_ns * (r->data_bytes / 4) / (double)(waiting_bytes + 1);

	if (!r->drained_ns)
		ns = 0;
	r->drained_ns = now;
	r->drain_deadline_ns = ns < (double)most ? (uint64_t)ns : most;
	if (r->drain_deadline_ns < DRAIN_DEADLINE_MIN)
		r->drain_deadline_ns = DRAIN_DEADLINE_MIN;
}

uint64_t ring_reader__drain_deadline_ns(const struct ring_reader *r)
{
	return r->drain_deadline_ns;
}

void ring_reader__begin(struct ring_reader *r)
{
	r->lost_before = __atomic_load_n(&r->page->lost, __ATOMIC_RELAXED);
}

int ring_reader__drain(struct ring_reader *r, collector_event_fn fn, void *arg)
{
	uint64_t event[GP_RING_EVENT_BYTES / 8];
	uint64_t head = __atomic_load_n(&r->page->head, __ATOMIC_ACQUIRE);
	uint64_t now = collector_events__now(&r->events);
	int taken_nr = 0, err = 0;
	size_t judged;

	r->broken = r->broken || head - r->tail > r->data_bytes || head % 8 ||
		    shared_mapping__is_lost(r->mapping);
	if (r->broken)
		return -EPROTO;
	set_drain_deadline(r, head - r->tail);
	while (!err && r->tail != head) {
		struct gp_ring_slot slot = read_slot(r, r->tail);
		size_t bytes = slot.bytes - sizeof(slot);

		if (!is_ready(&slot, r->tail, head - r->tail)) {
			if (!slot_is_dead(r))
				break;
			skip_dead(r, head);
			continue;
		}
		copy_out(r, r->tail + sizeof(slot), event, bytes);
		give_back(r, r->tail + slot.bytes);
		judged = collector_events__validate(&r->events, event, bytes, now);
		if (!judged)
			continue;
		err = fn(event, judged, arg);
		taken_nr++;
	}
	publish(r);
	return err ? err : taken_nr;
}

bool ring_reader__asks_quiesce(const struct ring_reader *r)
{
	return __atomic_load_n(&r->page->quiesce, __ATOMIC_ACQUIRE) == GP_QUIESCE_ASKED;
}

/* True if it still waited. */
static bool answer_quiesce(struct ring_reader *r, uint32_t answer)
{
	uint32_t asked = GP_QUIESCE_ASKED;

	if (!__atomic_compare_exchange_n(&r->page->quiesce, &asked, answer, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return false;
	(void)syscall(SYS_futex, &r->page->quiesce, FUTEX_WAKE, 1, NULL, NULL, 0);
	return true;
}

void ring_reader__refuse_quiesce(struct ring_reader *r)
{
	(void)answer_quiesce(r, GP_QUIESCE_REFUSED);
}

/* Waits while it is `state`; false: it still is. */
static bool leaves_state(const struct ring_reader *r, uint32_t state, uint32_t limit_ms)
{
	static const struct timespec turn = {.tv_nsec = 1000000};
	uint64_t end_ns = clock_now_ns() + limit_ms * 1000000ULL;

	while (__atomic_load_n(&r->page->quiesce, __ATOMIC_ACQUIRE) == state) {
		if (clock_now_ns() >= end_ns)
			return false;
		(void)syscall(SYS_futex, &r->page->quiesce, FUTEX_WAIT, state, &turn, NULL, 0);
	}
	return true;
}

enum quiesce_end ring_reader__give_quiesce(struct ring_reader *r, bool all_out, uint32_t limit_ms,
					   uint32_t longer_ms)
{
	uint32_t given = all_out ? GP_QUIESCE_ALL_OUT : GP_QUIESCE_WAITING, now = given;

	if (!answer_quiesce(r, given))
		return QUIESCE_UNWANTED;
	/* What is not begun by then is not to be begun. */
	if (!leaves_state(r, given, limit_ms) &&
	    __atomic_compare_exchange_n(&r->page->quiesce, &now, GP_QUIESCE_REFUSED, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return QUIESCE_TOO_LONG;
	return leaves_state(r, GP_QUIESCE_USED, longer_ms) ? QUIESCE_DONE : QUIESCE_TOO_LONG;
}

void ring_reader__status(const struct ring_reader *r, struct collector_status *ret_status)
{
	struct collector_status *s = ret_status;
	uint32_t state = __atomic_load_n(&r->page->state, __ATOMIC_ACQUIRE);

	s->state =
		state <= GP_COLLECTOR_FAILED ? (enum gp_collector_state)state : GP_COLLECTOR_FAILED;
	s->active = __atomic_load_n(&r->page->active, __ATOMIC_ACQUIRE);
	s->failed = __atomic_load_n(&r->page->failed, __ATOMIC_ACQUIRE);
	s->beat = __atomic_load_n(&r->page->beat, __ATOMIC_RELAXED);
	s->broken = r->broken || shared_mapping__is_lost(r->mapping);
	memcpy(s->message, r->page->message, sizeof(s->message));
	s->message[sizeof(s->message) - 1] = '\0';
	for (char *c = s->message; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
}

uint32_t ring_reader__cupti_end(const struct ring_reader *r)
{
	return __atomic_load_n(&r->page->cupti_end, __ATOMIC_ACQUIRE);
}

static void add_loss(uint64_t *loss, uint64_t nr)
{
	*loss = add_saturating(*loss, nr);
}

void ring_reader__timed(const struct ring_reader *r, uint64_t *ret_ns, uint64_t *ret_nr)
{
	*ret_ns = __atomic_load_n(&r->page->timed_ns, __ATOMIC_RELAXED);
	*ret_nr = __atomic_load_n(&r->page->timed_nr, __ATOMIC_RELAXED);
}

uint64_t ring_reader__thread_cpu_ns(const struct ring_reader *r)
{
	return __atomic_load_n(&r->page->thread_cpu_ns, __ATOMIC_RELAXED);
}

void ring_reader__losses(const struct ring_reader *r, uint64_t losses[GP_LOSS_NR])
{
	const struct collector_events *e = &r->events;
	uint64_t lost = __atomic_load_n(&r->page->lost, __ATOMIC_RELAXED);

	_Static_assert(GP_LOSS_NR <= sizeof(r->page->losses) / sizeof(r->page->losses[0]),
		       "the page has a place for each");
	for (int i = 0; i < GP_LOSS_NR; i++)
		add_loss(&losses[i], __atomic_load_n(&r->page->losses[i], __ATOMIC_RELAXED));
	add_loss(&losses[GP_LOSS_COLLECTOR_FULL],
		 lost > r->lost_before ? lost - r->lost_before : 0);
	add_loss(&losses[GP_LOSS_RECORD], e->refused_nr + r->skipped_nr + r->broken);
	add_loss(&losses[GP_LOSS_NAMES], e->names_lost_nr);
	add_loss(&losses[GP_LOSS_STACK_ROOM], e->stacks_lost_nr);
	add_loss(&losses[GP_LOSS_THREAD], e->tids.unknown_nr);
}
