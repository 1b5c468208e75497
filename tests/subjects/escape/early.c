/* Tries what is forbidden before its own main function: in a resolver of an indirect function, in an array that runs
 * before every constructor, as a program interpreter, or, as a library, in a constructor within another program. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

static long call(long number, long a, long b, long c)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

enum { WRITE = 1, EXIT_GROUP = 231, UNSHARE = 272, NEW_USER = 0x10000000 };

static void try_early(void)
{
	call(WRITE, 1, (long)"trying\n", 7);
	if (call(UNSHARE, NEW_USER, 0, 0) == 0)
		call(WRITE, 1, (long)"escaped\n", 8);
}

#if defined LOADER
void _start(void)
{
	try_early();
	call(EXIT_GROUP, 0, 0, 0);
}
#elif defined RESOLVER
static int answer(void)
{
	return 0;
}

static void *resolve(void)
{
	try_early();
	return answer;
}

int resolved(void) __attribute__((ifunc("resolve")));

int main(void)
{
	return resolved();
}
#elif defined LIBRARY

__attribute__((constructor)) static void hook(void)
{
	if (!strcmp(program_invocation_short_name, "escape"))
		call(WRITE, 1, (long)"escaped\n", 8);
}
#else
static void first(int argc, char **argv, char **envp)
{
	try_early();
}

__attribute__((section(".preinit_array"), used)) static void (*const start)(int, char **, char **) = first;

int main(void)
{
	return 0;
}
#endif
