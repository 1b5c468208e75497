/* Secrets in the environment, hooks of interpreters, and traps for programs outside. */
#define _GNU_SOURCE
#include "escape.h"

#define ACT(name, body) static int name(void) { return body; }
#define PLANTS(name, path) ACT(name, append(home(path)))
#define LEAVES(name, path) ACT(name, append(path))
#define READS(name, path) ACT(name, leak(home(path)))
#define RUNS(name, ...) ACT(name, done(execve(((char *[]){ __VA_ARGS__, NULL })[0], (char *[]){ __VA_ARGS__, NULL }, environ)))

static int own_environment(void)
{
	for (char **entry = environ; *entry; entry++)
		say(*entry);
	return 0;
}

static int own_environment_file(void)
{
	char buffer[16384];
	int fd = open("/proc/self/environ", O_RDONLY);
	long count = fd < 0 ? -1 : read(fd, buffer, sizeof buffer);
	return count < 0 ? done(count) : done(write(1, buffer, count));
}

RUNS(shell_hook, "/bin/bash", "-c", "true")
RUNS(shell_function, "/bin/bash", "-c", "planted_function")
RUNS(python_hook, "/usr/bin/python3", "-c", "pass")
RUNS(perl_hook, "/usr/bin/perl", "-e", "1")
RUNS(node_hook, "/usr/bin/node", "-e", "1")
RUNS(loader_hook, "./escape", "nothing")

PLANTS(shell_start, ".bashrc")
PLANTS(login_start, ".profile")
PLANTS(ssh_key, ".ssh/authorized_keys")
PLANTS(ssh_commands, ".ssh/config")
PLANTS(git_commands, ".gitconfig")
PLANTS(desktop_start, ".config/autostart/made.desktop")
PLANTS(service, ".config/systemd/user/made.service")
PLANTS(own_profile, ".config/sbx/profiles/default.json")
PLANTS(program_in_path, ".local/bin/made")
PLANTS(agent_settings, ".claude/settings.json")
PLANTS(editor_settings, ".vscode/settings.json")
READS(cargo_token, ".cargo/credentials.toml")
READS(git_token, ".config/git/credentials")
READS(maven_password, ".m2/settings.xml")
READS(hub_token, ".config/gh/hosts.yml")
READS(npm_token, ".npmrc")
READS(cloud_keys, ".aws/credentials")
READS(net_passwords, ".netrc")
READS(other_project, "other-project/.env")
READS(shell_history, ".bash_history")
LEAVES(git_hook, ".git/hooks/pre-commit")
LEAVES(git_settings, ".git/config")
LEAVES(directory_environment, ".envrc")
LEAVES(editor_tasks, ".vscode/tasks.json")
LEAVES(agent_servers, ".cursor/mcp.json")
LEAVES(agent_hooks, ".claude/settings.json")
LEAVES(package_script, "package.json")
LEAVES(build_file, "Makefile")
LEAVES(program_of_project, "node_modules/.bin/made")
LEAVES(library_start, "sitecustomize.py")

const struct attempt environment[] = {
	{ "own-environment", own_environment },
	{ "own-environment-file", own_environment_file },
	{ "shell-hook", shell_hook },
	{ "shell-function", shell_function },
	{ "python-hook", python_hook },
	{ "perl-hook", perl_hook },
	{ "node-hook", node_hook },
	{ "loader-hook", loader_hook },
	{ "shell-start", shell_start },
	{ "login-start", login_start },
	{ "ssh-key", ssh_key },
	{ "ssh-commands", ssh_commands },
	{ "git-commands", git_commands },
	{ "desktop-start", desktop_start },
	{ "service", service },
	{ "own-profile", own_profile },
	{ "program-in-path", program_in_path },
	{ "agent-settings", agent_settings },
	{ "editor-settings", editor_settings },
	{ "cargo-token", cargo_token },
	{ "git-token", git_token },
	{ "maven-password", maven_password },
	{ "hub-token", hub_token },
	{ "npm-token", npm_token },
	{ "cloud-keys", cloud_keys },
	{ "net-passwords", net_passwords },
	{ "other-project", other_project },
	{ "shell-history", shell_history },
	{ "git-hook", git_hook },
	{ "git-settings", git_settings },
	{ "directory-environment", directory_environment },
	{ "editor-tasks", editor_tasks },
	{ "agent-servers", agent_servers },
	{ "agent-hooks", agent_hooks },
	{ "package-script", package_script },
	{ "build-file", build_file },
	{ "program-of-project", program_of_project },
	{ "library-start", library_start },
	{ NULL, NULL },
};
