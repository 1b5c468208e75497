/* A library for LD_PRELOAD that leaves a mark when it is loaded. */
#include "raw.h"

__attribute__((constructor)) static void loaded(void)
{
	mark();
}
