/* Tries its effect inside an IFUNC resolver: after the loader has mapped everything, before any constructor. */
#include "raw.h"

static int answer(void)
{
	return 0;
}

static void *resolver(void)
{
	mark();
	return answer;
}

int resolved(void) __attribute__((ifunc("resolver")));

int main(void)
{
	return resolved();
}
