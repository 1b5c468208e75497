/* Sockets that lead out of the machine. Nothing but loopback is ever named. */
#define _GNU_SOURCE
#include "escape.h"
#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define ACT(name, body) static int name(void) { return body; }
#define CONNECTS(name, family, kind, protocol, port) ACT(name, joins(family, kind, protocol, port, 0))
#define MAKES(name, family, kind, protocol) ACT(name, done(syscall(SYS_socket, (long)(family), (long)(kind), (long)(protocol))))

union address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

static socklen_t loopback(union address *to, int family, int port)
{
	memset(to, 0, sizeof *to);
	if (family == AF_INET6) {
		to->six.sin6_family = AF_INET6;
		to->six.sin6_port = htons(port);
		to->six.sin6_addr = in6addr_loopback;
		return sizeof to->six;
	}
	to->four.sin_family = AF_INET;
	to->four.sin_port = htons(port);
	to->four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sizeof to->four;
}

/* Sends a packet, or connects. */
static int joins(int family, long kind, int protocol, int port, int flags)
{
	union address to;
	socklen_t length = loopback(&to, family, port);
	long fd = syscall(SYS_socket, (long)family, kind, (long)protocol);
	if (fd < 0)
		return done(fd);
	if (flags || (kind & 0xf) == SOCK_DGRAM)
		return done(sendto(fd, "x", 1, flags, &to.any, length));
	return done(connect(fd, &to.any, length));
}

CONNECTS(tcp, AF_INET, SOCK_STREAM, 0, facts.tcp)
CONNECTS(tcp6, AF_INET6, SOCK_STREAM, 0, facts.tcp6)
CONNECTS(udp, AF_INET, SOCK_DGRAM, 0, facts.udp)
CONNECTS(udp6, AF_INET6, SOCK_DGRAM, 0, facts.udp6)
CONNECTS(mptcp, AF_INET, SOCK_STREAM, 262, facts.tcp)
CONNECTS(high_type, AF_INET, SOCK_STREAM | HIGH, 0, facts.tcp)
ACT(fast_open, joins(AF_INET, SOCK_STREAM, 0, facts.tcp, MSG_FASTOPEN))
ACT(fast_open6, joins(AF_INET6, SOCK_STREAM, 0, facts.tcp6, MSG_FASTOPEN))
MAKES(udp_lite, AF_INET, SOCK_DGRAM, 136)
MAKES(sctp, AF_INET, SOCK_STREAM, 132)
MAKES(raw_icmp, AF_INET, SOCK_RAW, IPPROTO_ICMP)
MAKES(raw_ip, AF_INET, SOCK_RAW, IPPROTO_RAW)
MAKES(ping, AF_INET, SOCK_DGRAM, IPPROTO_ICMP)
MAKES(old_packet, AF_INET, 10, 0x300)
MAKES(packet, AF_PACKET, SOCK_RAW, 0)
MAKES(packet_high, AF_PACKET | HIGH, SOCK_RAW, 0)
MAKES(route, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)
MAKES(socket_list, AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG)
MAKES(netfilter, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER)
MAKES(transformations, AF_NETLINK, SOCK_RAW, NETLINK_XFRM)
MAKES(generic, AF_NETLINK, SOCK_RAW, NETLINK_GENERIC)
MAKES(audit, AF_NETLINK, SOCK_RAW, NETLINK_AUDIT)
MAKES(uevents, AF_NETLINK, SOCK_DGRAM, NETLINK_KOBJECT_UEVENT)
MAKES(vsock, AF_VSOCK, SOCK_STREAM, 0)
MAKES(crypto, AF_ALG, SOCK_SEQPACKET, 0)
MAKES(express, 44, SOCK_RAW, 0)
MAKES(key_management, AF_KEY, SOCK_RAW, 2)
MAKES(tipc, 30, SOCK_SEQPACKET, 0)
MAKES(rds, 21, SOCK_SEQPACKET, 0)
MAKES(bluetooth, AF_BLUETOOTH, SOCK_RAW, 0)
MAKES(bus, 29, SOCK_RAW, 1)

/* Every number that could be a family, but those above and UNIX. */
static int other_families(void)
{
	static const int kinds[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET };
	for (int family = 0; family < 64; family++) {
		if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_PACKET || family == AF_NETLINK
		    || family == AF_VSOCK || family == 44)
			continue;
		for (size_t kind = 0; kind < LENGTH(kinds); kind++)
			if (socket(family, kinds[kind], 0) >= 0)
				return 0;
	}
	return done(-1);
}

static int high_family(void)
{
	union address to;
	socklen_t length = loopback(&to, AF_INET, facts.tcp);
	long fd = syscall(SYS_socket, AF_INET | HIGH, (long)SOCK_STREAM, 0L);
	return fd < 0 ? done(fd) : done(connect(fd, &to.any, length));
}

static int mapped_address(void)
{
	union address to;
	loopback(&to, AF_INET6, facts.tcp);
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &to.six.sin6_addr);
	return done(connect(socket(AF_INET6, SOCK_STREAM, 0), &to.any, sizeof to.six));
}

static int late_fast_open(void)
{
	union address to;
	socklen_t length = loopback(&to, AF_INET, facts.tcp);
	int yes = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &yes, sizeof yes))
		return done(-1);
	return connect(fd, &to.any, length) ? done(-1) : done(write(fd, "x", 1));
}

static int many_messages(void)
{
	union address to;
	struct iovec part = { "x", 1 };
	struct mmsghdr message = { .msg_hdr = { .msg_name = &to, .msg_iov = &part, .msg_iovlen = 1 } };
	message.msg_hdr.msg_namelen = loopback(&to, AF_INET, facts.tcp);
	return done(sendmmsg(socket(AF_INET, SOCK_STREAM, 0), &message, 1, MSG_FASTOPEN));
}

static int listens(int kind, int by_name)
{
	union address at;
	socklen_t length = loopback(&at, AF_INET, 0);
	int fd = socket(AF_INET, kind, 0);
	if (fd < 0 || (by_name && bind(fd, &at.any, length)))
		return done(-1);
	return kind == SOCK_DGRAM ? 0 : done(listen(fd, 1));
}

ACT(listen_unbound, listens(SOCK_STREAM, 0))
ACT(listen_bound, listens(SOCK_STREAM, 1))
ACT(receive_bound, listens(SOCK_DGRAM, 1))

/* A descriptor that the caller forgot to close, and the one it reads from. */
static int used_socket(int fd)
{
	union address to;
	socklen_t length = loopback(&to, AF_INET, facts.udp);
	return done(sendto(fd, "x", 1, 0, &to.any, length));
}

ACT(leaked_socket, used_socket(LEAKED_SOCKET))
ACT(socket_as_stdin, used_socket(0))

static int socket_as_stdin_by_message(void)
{
	union address to;
	struct iovec part = { "x", 1 };
	struct msghdr message = { .msg_name = &to, .msg_iov = &part, .msg_iovlen = 1 };
	message.msg_namelen = loopback(&to, AF_INET, facts.udp);
	return done(sendmsg(0, &message, 0));
}

static int interface_setting(void)
{
	struct ifreq interface = { .ifr_name = "lo" };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0 || ioctl(fd, SIOCGIFTXQLEN, &interface))
		return done(-1);
	return done(ioctl(fd, SIOCSIFTXQLEN, &interface));
}

const struct attempt network[] = {
	{ "tcp", tcp },
	{ "tcp6", tcp6 },
	{ "udp", udp },
	{ "udp6", udp6 },
	{ "udp-lite", udp_lite },
	{ "sctp", sctp },
	{ "mptcp", mptcp },
	{ "fast-open", fast_open },
	{ "fast-open6", fast_open6 },
	{ "late-fast-open", late_fast_open },
	{ "many-messages", many_messages },
	{ "mapped-address", mapped_address },
	{ "high-family", high_family },
	{ "high-type", high_type },
	{ "listen-unbound", listen_unbound },
	{ "listen-bound", listen_bound },
	{ "receive-bound", receive_bound },
	{ "leaked-socket", leaked_socket },
	{ "socket-as-stdin", socket_as_stdin },
	{ "socket-as-stdin-by-message", socket_as_stdin_by_message },
	{ "raw-icmp", raw_icmp },
	{ "raw-ip", raw_ip },
	{ "ping", ping },
	{ "old-packet", old_packet },
	{ "packet", packet },
	{ "packet-high", packet_high },
	{ "route", route },
	{ "socket-list", socket_list },
	{ "netfilter", netfilter },
	{ "transformations", transformations },
	{ "generic-netlink", generic },
	{ "audit", audit },
	{ "uevents", uevents },
	{ "vsock", vsock },
	{ "crypto-socket", crypto },
	{ "express-path", express },
	{ "key-management", key_management },
	{ "tipc", tipc },
	{ "rds", rds },
	{ "bluetooth", bluetooth },
	{ "can-bus", bus },
	{ "other-families", other_families },
	{ "interface-setting", interface_setting },
	{ NULL, NULL },
};
