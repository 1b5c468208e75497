"""What attempts to get out are made of: a register, connections, questions, and first bytes of TLS and HTTP."""
import ctypes, socket, struct, time

RULES = ["--connect", "allowed.example:80,443", "--connect", "*.wild.example:80", "--connect", "203.0.113.15:80"]
ALLOWED, OTHER, PRIVATE = "203.0.113.10", "203.0.113.11", "10.0.0.1"
LIBC = ctypes.CDLL(None, use_errno=True)
all = []


def attempt(flags=(), seen=(), control=False):
    """Registers a function. `seen`: lines of the log that the rules allow. `control`: at least one has to be there."""

    def register(function):
        all.append((function.__name__, function, list(flags), list(seen), control))
        return function

    return register


def quietly(function):
    """Calls it, whatever it raises."""
    try:
        return function()
    except (OSError, ValueError, UnicodeError, EOFError):
        return None


def tcp(address, port, data=b"GET / HTTP/1.0\r\n\r\n", family=socket.AF_INET, kind=socket.SOCK_STREAM, proto=0):
    def talk():
        with socket.socket(family, kind, proto) as s:
            s.settimeout(3)
            s.connect((address, port))
            s.sendall(data)
            return s.recv(100)

    return quietly(talk)


def question(labels, kind=1, ident=7):
    name = b"".join(bytes([len(label)]) + label for label in labels)
    return struct.pack(">HHHHHH", ident, 0x100, 1, 0, 0, 0) + name + struct.pack(">BHH", 0, kind, 1)


def ask(labels, kind=1, server="203.0.113.53"):
    def talk():
        with socket.socket(type=socket.SOCK_DGRAM) as s:
            s.settimeout(2)
            s.sendto(question(labels, kind), (server, 53))
            return s.recv(512)

    return quietly(talk)


def address_of(name):
    answer = quietly(lambda: socket.getaddrinfo(name, 80, socket.AF_INET, socket.SOCK_STREAM))
    return answer[0][4][0] if answer else None


def hello(names, pieces=None, pause=0.0, extensions=b""):
    """A ClientHello with these server names, sent to the address of allowed.example in pieces."""
    entries = b"".join(b"\0" + struct.pack(">H", len(name)) + name for name in names)
    sni = struct.pack(">HHH", 0, len(entries) + 2, len(entries)) + entries if names else b""
    body = b"\3\3" + bytes(32) + b"\0" + struct.pack(">H", 2) + b"\x13\1" + b"\1\0"
    body += struct.pack(">H", len(sni) + len(extensions)) + sni + extensions
    handshake = b"\1" + struct.pack(">I", len(body))[1:] + body
    record = b"\x16\3\1" + struct.pack(">H", len(handshake)) + handshake
    send("allowed.example", 443, record, pieces, pause)


def send(host, port, data, pieces=None, pause=0.0):
    def talk():
        with socket.create_connection((host, port), timeout=5) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            step = pieces or len(data)
            for at in range(0, len(data), step):
                s.sendall(data[at : at + step])
                time.sleep(pause)
            return s.recv(100)

    return quietly(talk)


def http(head):
    return send("allowed.example", 80, head.encode("latin-1"))


SEEN_TLS = [f"connection {ALLOWED} 443", f"bytes {ALLOWED} 443", "question allowed.example"]
SEEN_HTTP = [f"connection {ALLOWED} 80", f"bytes {ALLOWED} 80", "question allowed.example"]
SEEN_ADDRESS = ["connection 203.0.113.15 80", "bytes 203.0.113.15 80"]
SEEN_BELOW = ["connection 203.0.113.12 80", "bytes 203.0.113.12 80", "question www.wild.example"]
# A host that is allowed may be connected to. What is said to another one must not arrive.
CONNECTED = [f"connection {ALLOWED} 443", f"connection {ALLOWED} 80", "question allowed.example"]
