/* Gives a supervisor that counts memory much to inspect, each look slow.
 *
 *   crowd exec     children of vfork(2) that wait in their exec for a memory that a thousand threads keep busy
 *   crowd look     processes that share one memory of a few million pages, none of which counts
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 1000, EXECS = 16, PROCESSES = 300, SHARERS = 9, STACK = 65536 };

static char stacks[PROCESSES + EXECS][STACK];
static char *pages;
static size_t size;
static volatile int go;

/* Memory that consists of nothing but page tables. */
static void fill(size_t bytes)
{
	size = bytes;
	pages = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pages == MAP_FAILED)
		_exit(2);
	madvise(pages, size, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < size; at += 4096)
		(void)*(volatile char *)(pages + at);
}

/* Memory that counts for each process that has it. */
static char *counted(size_t bytes)
{
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		_exit(2);
	memset(memory, 1, bytes);
	return memory;
}

static int idle(void *unused)
{
	for (;;)
		pause();
	return 0;
}

static int orphan(void *stack)
{
	clone(idle, stack, CLONE_VM | SIGCHLD, NULL);
	_exit(0);
}

static int replaced(void *unused)
{
	char *words[] = {"true", NULL};
	execv("/bin/true", words);
	_exit(1);
}

static void wait_for(volatile int *what)
{
	while (!*what)
		usleep(5000);
}

static void *protect(void *odd)
{
	wait_for(&go);
	for (;;)
		mprotect(pages, size, odd ? PROT_READ : PROT_NONE);
	return NULL;
}

static void *execute(void *stack)
{
	wait_for(&go);
	for (;;) {
		int child = clone(replaced, stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
		if (child > 0)
			waitpid(child, NULL, 0);
	}
	return NULL;
}

static void start(void *(*what)(void *), void *with)
{
	pthread_attr_t small;
	pthread_t thread;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK);
	if (pthread_create(&thread, &small, what, with))
		_exit(2);
}

int main(int count, char **words)
{
	char what = count == 2 ? words[1][0] : 0;
	memset(stacks, 1, sizeof stacks);
	if (what == 'e') {
		counted(20 << 20);
		fill((size_t)4 << 30);
		for (int n = 0; n < 10; n++)
			clone(idle, stacks[n] + STACK, CLONE_VM | SIGCHLD, NULL);
		for (int n = 0; n < EXECS; n++)
			start(execute, stacks[PROCESSES + n] + STACK);
		for (long n = 0; n < THREADS; n++)
			start(protect, (void *)(n & 1));
	} else if (what == 'l') {
		char *shared = counted(15 << 20);
		for (int n = 0; n < SHARERS; n++)
			if (fork() == 0) {
				for (size_t at = 0; at < 15 << 20; at += 4096)
					(void)*(volatile char *)(shared + at);
				idle(NULL);
			}
		fill((size_t)16 << 30);
		for (int n = 0; n < PROCESSES; n++) {
			/* The one in between goes before the other one uses the stack. */
			waitpid(clone(orphan, stacks[n] + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, stacks[n] + STACK / 2), NULL, 0);
		}
	} else {
		return 2;
	}
	go = 1;
	write(1, "ready\n", 6);
	if (what == 'l')
		/* Else the others would be taken for its children of vfork(2). */
		execl("/bin/sleep", "sleep", "1000", (char *)NULL);
	pause();
	return 0;
}
