/* What the attempts of all classes have in common.
 *
 * An attempt returns 0 when it got through as far as can be told from inside, 1 when it was refused, with a reason on
 * stdout. Where something outside shows it, the suite looks there and takes no notice of the answer. An attempt that
 * got hold of a secret prints it; one that did what only code outside a sandbox can prints ESCAPED. */
#ifndef ESCAPE_H
#define ESCAPE_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ESCAPED "escaped\n"
#define HIGH (1UL << 32)
#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* What the suite has prepared. */
struct facts {
	const char *home, *outside;   /* directories; the working directory is the workspace */
	int victim;                   /* a process outside, of the same user */
	unsigned long secret;         /* where a secret stands in its memory */
	int tcp, tcp6, udp, udp6;     /* ports on loopback that are listened on */
	const char *abstract;         /* an abstract stream socket; with "-dgram" behind it, a datagram one */
	const char *key;              /* the name of a key in the caller's session keyring */
	const char *extra;            /* what else the attempt was given: a path or a number */
};
extern struct facts facts;

/* Descriptors that the suite has forgotten to close: a secret file, the directory outside, a UDP socket. */
enum { LEAKED_FILE = 208, LEAKED_DIRECTORY = 209, LEAKED_SOCKET = 210 };
/* The descriptor that the victim holds a secret file with. */
enum { VICTIMS_FILE = 7 };

struct attempt {
	const char *name;
	int (*act)(void);
};
/* Each class's attempts; the last one has no name. */
extern const struct attempt files[], attributes[], machine[], network[], local_sockets[], processes[], tracing[], privileges[],
	namespaces[], kernel[], bypass[], memory[], supervisor[], environment[];

/* A path below a directory; the eight last ones stay valid. */
const char *below(const char *directory, const char *name);
#define outside(name) below(facts.outside, name)
#define home(name) below(facts.home, name)
#define of_victim(name) below_proc(facts.victim, name)
const char *below_proc(int pid, const char *name);

/* The kernel did it. */
int done(long result);
/* The kernel got as far as looking at arguments that make no sense, past every question of rights. */
int reached(long result);
/* Prints what a descriptor, or a file, holds. */
int show(long fd);
int leak(const char *path);
/* Opens and closes. */
int opens(const char *path, int flags);
/* Writes a line into a file that is there or is made. */
int append(const char *path);
/* A call that no sandbox of ours lets through and every user may make. Prints ESCAPED if it worked. */
int forbidden(void);
/* Runs this program again, as another attempt, with the same facts. */
char **again(const char *attempt);
void say(const char *text);
int refused(const char *why);
/* Whether this program has rights that its caller has not. Prints ESCAPED if so. */
int has_rights(void);
/* Sleeps. */
void rest(int milliseconds);
/* What was written before this is seen by others. */
#define SEEN __asm__ volatile("" ::: "memory")
/* Milliseconds since some time. */
long now(void);
/* How long something is raced against, and others get to run meanwhile. */
enum { RACE = 300 };

#endif
