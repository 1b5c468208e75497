/* Code that was data when the program started, and requests of io_uring, which need no calls. */
#define _GNU_SOURCE
#include "escape.h"
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <sys/shm.h>
#include <sys/socket.h>

#define ACT(name, body) static int name(void) { return body; }

/* mov $42, %eax; ret */
static const unsigned char code[] = { 0xb8, 42, 0, 0, 0, 0xc3 };

static int run(void *at)
{
	if (at == MAP_FAILED)
		return done(-1);
	if (((int (*)(void))at)() != 42)
		return 1;
	say(ESCAPED);
	return 0;
}

static int mapped(int fd, int flags)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | flags, fd, 0);
	return at == MAP_FAILED ? done(-1) : run(memcpy(at, code, sizeof code));
}

static void *written(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return at == MAP_FAILED ? at : memcpy(at, code, sizeof code);
}

ACT(writable, mapped(-1, MAP_ANONYMOUS))
ACT(writable_file, mapped(open("/proc/self/exe", O_RDONLY), 0))
ACT(writable_zeroes, mapped(open("/dev/zero", O_RDONLY), 0))

static int changed(int number)
{
	void *at = written();
	if (at == MAP_FAILED || syscall(number, at, 4096L, (long)(PROT_READ | PROT_EXEC), -1L))
		return done(-1);
	return run(at);
}

ACT(protected, changed(SYS_mprotect))
ACT(protected_by_key, changed(SYS_pkey_mprotect))

static int personal(void)
{
	void *at;
	if (syscall(SYS_personality, 0x0400000 /* READ_IMPLIES_EXEC */) < 0)
		return done(-1);
	at = written();
	return at == MAP_FAILED ? done(-1) : run(at);
}

static int shared(void)
{
	int id = shmget(IPC_PRIVATE, 4096, 0700);
	void *at = id < 0 ? (void *)-1 : shmat(id, NULL, SHM_EXEC);
	if (id >= 0)
		shmctl(id, IPC_RMID, NULL);
	return at == (void *)-1 ? done(-1) : run(memcpy(at, code, sizeof code));
}

static int twice(void)
{
	int fd = memfd_create("code", 0);
	if (fd < 0 || write(fd, code, sizeof code) < 0)
		return done(-1);
	return run(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0));
}

/* mprotect(2) makes nothing executable here, but it makes writable what can be run elsewhere. */
static int twice_zeroes(void)
{
	int fd = open("/dev/zero", O_RDWR);
	void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	void *second = at == MAP_FAILED ? at : mremap(at, 0, 4096, MREMAP_MAYMOVE);
	if (second == MAP_FAILED || mprotect(second, 4096, PROT_READ | PROT_WRITE))
		return done(-1);
	memcpy(second, code, sizeof code);
	return run(at);
}

__attribute__((noinline)) static int victim_function(void)
{
	__asm__ volatile(".skip 32, 0x90");
	return 7;
}

/* This file writes through read-only mappings. */
static int own_text(void)
{
	int fd = open("/proc/self/mem", O_RDWR);
	if (fd < 0 || pwrite(fd, code, sizeof code, (off_t)(long)victim_function) < 0)
		return done(-1);
	return run(victim_function);
}

/* One request through a ring. */
static long ring(struct io_uring_sqe what)
{
	struct io_uring_params params = { 0 };
	struct io_uring_sqe *requests;
	struct io_uring_cqe *answers;
	long fd = syscall(SYS_io_uring_setup, 1, &params);
	char *queue, *done_queue;
	if (fd < 0)
		return fd;
	queue = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
	done_queue = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_CQ_RING);
	requests = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
	requests[0] = what;
	((uint32_t *)(queue + params.sq_off.array))[0] = 0;
	*(volatile uint32_t *)(queue + params.sq_off.tail) = 1;
	if (syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		return -1;
	answers = (struct io_uring_cqe *)(done_queue + params.cq_off.cqes);
	if (answers[0].res < 0) {
		errno = -answers[0].res;
		return -1;
	}
	return answers[0].res;
}

static int ring_opens(void)
{
	struct io_uring_sqe open = { .opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .open_flags = O_RDONLY };
	open.addr = (uint64_t)home(".ssh/id_rsa");
	return show(ring(open));
}

static int ring_connects(void)
{
	struct io_uring_sqe make = { .opcode = 45 /* IORING_OP_SOCKET */, .fd = AF_INET, .off = SOCK_STREAM };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(facts.tcp) };
	struct io_uring_sqe join = { .opcode = IORING_OP_CONNECT, .addr = (uint64_t)&to, .off = sizeof to };
	long fd = ring(make);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	join.fd = fd;
	return fd < 0 ? done(fd) : done(ring(join));
}

const struct attempt memory[] = {
	{ "code-in-writable-memory", writable },
	{ "code-in-copied-file", writable_file },
	{ "code-in-zeroes", writable_zeroes },
	{ "code-made-executable", protected },
	{ "code-made-executable-by-key", protected_by_key },
	{ "code-by-personality", personal },
	{ "code-in-shared-memory", shared },
	{ "code-in-memory-file", twice },
	{ "code-in-zeroes-mapped-twice", twice_zeroes },
	{ "code-over-own-text", own_text },
	{ "ring-opens", ring_opens },
	{ "ring-connects", ring_connects },
	{ NULL, NULL },
};
