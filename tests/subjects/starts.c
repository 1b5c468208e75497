// Has a shell run a line, in each way that libc has for it: starts WAY LINE. Then shows what its own environment has of
// LD_PRELOAD and of NEW, which it sets between two lines.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void show(void)
{
    for (char **entry = environ; *entry; entry++)
        if (!strncmp(*entry, "LD_PRELOAD=", 11) || !strncmp(*entry, "NEW=", 4))
            puts(*entry);
    fflush(stdout);
}

int main(int count, char **words)
{
    if (count != 3)
        return 99;
    const char *way = words[1], *line = words[2];
    if (!strcmp(way, "system")) {
        int status = system(line);
        setenv("NEW", "1", 1);
        if (system("test \"$NEW\" = 1"))
            return 98;
        show();
        clearenv();
        if (system("/bin/true") || execlp("nowhere", "nowhere", (char *)NULL) != -1)
            return 96;
        return WEXITSTATUS(status);
    }
    if (!strcmp(way, "popen")) {
        FILE *from = popen(line, "r");
        char room[256];
        while (fgets(room, sizeof room, from))
            fputs(room, stdout);
        show();
        return WEXITSTATUS(pclose(from));
    }
    // More words than there are registers.
    if (!strcmp(way, "execl"))
        execl("/bin/sh", "sh", "-c", line, "0", "1", "2", "3", "4", "5", "6", (char *)NULL);
    if (!strcmp(way, "execlp"))
        execlp("sh", "sh", "-c", line, "0", "1", "2", "3", "4", "5", "6", (char *)NULL);
    if (!strcmp(way, "execle")) {
        char *environment[] = {"PATH=/usr/bin:/bin", "NEW=2", NULL};
        execle("/bin/sh", "sh", "-c", line, "0", "1", "2", "3", "4", "5", "6", (char *)NULL, environment);
    }
    return 97;
}
