/* Makes many threads queue for a lock of the kernel that a supervisor takes too, and one thread call the supervisor.
 *
 *   convoy memory    the lock of its own memory, which readers of the memory take
 *   convoy file      the lock of a file, "big", which changing its mode takes
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 1000, MEMORY = 256 << 20, FILE_SIZE = 16 << 20 };

static char *memory;
static int file = -1;
static volatile int go;

static void *queue(void *unused)
{
	while (!go)
		usleep(20000);
	for (;;) {
		if (file < 0) {
			mprotect(memory, MEMORY, PROT_READ);
			mprotect(memory, MEMORY, PROT_READ | PROT_WRITE);
		} else if (pwrite(file, memory, FILE_SIZE, 0) < 0) {
			_exit(3);
		}
	}
	return unused;
}

static void *call(void *unused)
{
	while (!go)
		usleep(1000);
	usleep(300000);
	for (;;) {
		if (file < 0 ? chroot("/nowhere") == 0 : fchmod(file, 0600) == 2)
			_exit(4);
	}
	return unused;
}

int main(int count, char **words)
{
	pthread_attr_t small;
	pthread_t thread;
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (count != 2 || memory == MAP_FAILED || pthread_attr_init(&small) || pthread_attr_setstacksize(&small, 65536))
		return 2;
	if (strcmp(words[1], "file") == 0) {
		file = open("big", O_RDWR | O_CREAT, 0600);
		if (file < 0)
			return 2;
	} else {
		madvise(memory, MEMORY, MADV_NOHUGEPAGE);
		memset(memory, 1, MEMORY);
	}
	for (int made = 0; made < THREADS; made++)
		if (pthread_create(&thread, &small, made == 0 ? call : queue, NULL))
			return 2;
	go = 1;
	write(1, "ready\n", 6);
	pause();
	return 0;
}
