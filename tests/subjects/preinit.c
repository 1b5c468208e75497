/* Tries its effect in DT_PREINIT_ARRAY: before the constructors of ordinary libraries. */
#include "raw.h"

static void before_everything(void)
{
	mark();
}

__attribute__((section(".preinit_array"), used)) static void (*entry)(void) = before_everything;

int main(void)
{
	return 0;
}
