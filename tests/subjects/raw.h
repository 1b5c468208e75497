/* System calls without a library, for code that runs before there is one. */
#ifdef __x86_64__
static long raw(long nr, long a, long b, long c, long d)
{
	long result;
	register long r10 __asm__("r10") = d;
	__asm__ volatile("syscall" : "=a"(result) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
	return result;
}
#define OPENAT 257
#define EXIT_GROUP 231
#else
#error "written for x86_64"
#endif

/* Makes the file "mark" in the working directory, the effect that a test looks for. */
static long mark(void)
{
	return raw(OPENAT, -100, (long)"mark", 0101, 0644);
}
