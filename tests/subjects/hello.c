/* The smallest program that uses stdio: fstat, write, exit_group. */
#include <stdio.h>

int main(void)
{
	puts("Hello, world!");
	return 0;
}
