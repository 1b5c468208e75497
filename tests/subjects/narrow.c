/* A 32-bit program without a library: its effect goes through the 32-bit table. */
static long raw32(long nr, long a, long b, long c)
{
#ifdef __arm__
	register long r7 __asm__("r7") = nr;
	register long r0 __asm__("r0") = a;
	register long r1 __asm__("r1") = b;
	register long r2 __asm__("r2") = c;
	__asm__ volatile("svc #0" : "+r"(r0) : "r"(r7), "r"(r1), "r"(r2) : "memory");
	return r0;
#else
	long result;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
#endif
}

void _start(void)
{
	long made = raw32(5, (long)"mark", 0101, 0644);
	raw32(1, made < 0 ? 1 : 0, 0, 0);
}
