"""Servers of the test internet besides name, web and echo servers: services.start(...)."""
import os, pathlib, socket, subprocess, threading, time

ADDRESSES = ["203.0.113.10", "203.0.113.11"]
REDIS, GRPC = 16379, 16443
kept = []


def places():
    """Where they listen: sshd at 22, PostgreSQL's protocol at 5432, and redis-server at 6379."""
    return [(address, port) for address in ADDRESSES for port in (22, 5432, 6379)]


def start(listeners, log, certificate, certificate_key):
    """Serves these sockets, by their places."""
    key = make_keys()
    passwd = pathlib.Path("passwd")
    passwd.write_text("guest:x:65534:65534:guest:/:/bin/sh\n")
    pathlib.Path("sshd_config").write_text(
        f"HostKey {key.absolute()}\nAuthorizedKeysFile {key.absolute()}.pub\nUsePAM no\nStrictModes no\n")
    keep(["redis-server", "--port", str(REDIS), "--bind", "127.0.0.1", "--save", "", "--daemonize", "no"])
    serve_grpc(certificate, certificate_key)
    talks = {22: ssh, 5432: postgres, 6379: lambda connection: relay(connection, REDIS)}
    for (address, port), listener in listeners.items():
        background(accept, listener, address, port, log, talks[port])
    reach(REDIS)


def background(target, *args):
    threading.Thread(target=target, args=args, daemon=True).start()


def accept(server, address, port, log, talk):
    while True:
        connection, _ = server.accept()
        log("connection", address, port)
        background(talk, connection)


def keep(command):
    """Starts a server that ends with this program (PR_SET_PDEATHSIG)."""
    words = ["setpriv", "--pdeathsig", "KILL", *command]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def reach(port):
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise OSError(f"nobody listens on {port}")


def make_keys():
    """One key for both sides: whoever has it is let in."""
    key = pathlib.Path("ssh_key")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    public = pathlib.Path("ssh_key.pub").read_text()
    pathlib.Path("known_hosts").write_text(f"*.example {public}")
    return key


def ssh(connection):
    """sshd as an ordinary user of a user namespace of its own, who may log in as guest."""
    script = "mount --bind passwd /etc/passwd && exec unshare --user --map-user=65534 --map-group=65534 " \
             "/usr/sbin/sshd -i -f sshd_config"
    with connection:
        subprocess.run(["unshare", "--mount", "sh", "-c", script], stdin=connection, stdout=connection)


def relay(connection, port):
    """Passes bytes on to a server on loopback."""
    server = socket.create_connection(("127.0.0.1", port))
    background(copy, connection, server)
    copy(server, connection)


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def postgres(connection):
    """As much of PostgreSQL's protocol as a client needs to log in without a password and to ask one question."""
    def message(kind, body):
        return kind + (len(body) + 4).to_bytes(4, "big") + body

    with connection, connection.makefile("rb") as stream:
        startup = b""
        while startup[:2] != b"\0\3":
            startup = stream.read(int.from_bytes(stream.read(4), "big") - 4)
            if startup[:2] != b"\0\3":
                connection.sendall(b"N")  # Neither TLS nor GSSAPI.
        ready = message(b"Z", b"I")
        connection.sendall(message(b"R", b"\0\0\0\0") + message(b"S", b"server_version\x0015.0\0") + ready)
        if stream.read(1) == b"Q":
            stream.read(int.from_bytes(stream.read(4), "big") - 4)
            column = b"answer\0" + bytes(4) + bytes(2) + (25).to_bytes(4, "big") + b"\xff\xff" + b"\xff" * 4 + bytes(2)
            value = b"\0\1\0\0\0\6" + b"stored"
            connection.sendall(message(b"T", b"\0\1" + column) + message(b"D", value)
                               + message(b"C", b"SELECT 1\0") + ready)
            stream.read(5)


def serve_grpc(certificate, key):
    """A server of gRPC on loopback. The web servers bring it those who speak nothing but HTTP/2."""
    import grpc
    from concurrent import futures

    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: b"hello " + request)
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Greeter", {"Greet": handler})])
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    server.add_secure_port(f"127.0.0.1:{GRPC}", credentials)
    server.start()
    kept.append(server)
