"""What the web servers of the test internet have besides a greeting: packages and repositories.

Every host has the same. In documents, @HOST@ stands for the host that was asked.
"""
import hashlib, io, json, os, pathlib, subprocess, tarfile, zipfile

SITE = pathlib.Path("site")


def make():
    """Makes the files, a package called `thing` for each manager."""
    SITE.mkdir(exist_ok=True)
    put("simple/thing/index.html", b'<a href="../../thing-1.0-py3-none-any.whl">thing-1.0-py3-none-any.whl</a>')
    put("thing-1.0-py3-none-any.whl", zipped({
        "thing.py": "print('imported')\n",
        "thing-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n",
        "thing-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "thing-1.0.dist-info/RECORD": "thing.py,,\n",
    }))
    node = tarred({"package/package.json": '{"name":"thing","version":"1.0.0"}', "package/index.js": ""})
    dist = {"tarball": "https://@HOST@/thing-1.0.0.tgz", "shasum": hashlib.sha1(node).hexdigest()}
    versions = {"1.0.0": {"name": "thing", "version": "1.0.0", "dist": dist}}
    put("thing-1.0.0.tgz", node)
    put("thing", json.dumps({"name": "thing", "dist-tags": {"latest": "1.0.0"}, "versions": versions}).encode())
    module = "go/site.example/thing/@v/"
    put(module + "list", b"v1.0.0\n")
    put(module + "v1.0.0.info", b'{"Version":"v1.0.0"}')
    put(module + "v1.0.0.mod", b"module site.example/thing\n")
    put(module + "v1.0.0.zip", zipped({"site.example/thing@v1.0.0/thing.go": "package thing\n"}))
    manifest = '[package]\nname = "thing"\nversion = "1.0.0"\n'
    crate = tarred({"thing-1.0.0/Cargo.toml": manifest, "thing-1.0.0/src/lib.rs": ""})
    line = {"name": "thing", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
            "cksum": hashlib.sha256(crate).hexdigest()}
    put("crates/thing", crate)
    put("index/th/in/thing", json.dumps(line).encode() + b"\n")
    put("index/config.json", b'{"dl": "https://@HOST@/crates/{crate}"}')
    for host in ("allowed.example", "other.example"):
        config = f'{{"dl": "https://{host}/crates/{{crate}}"}}'
        repository(f"index-{host}", {"th/in/thing": json.dumps(line) + "\n", "config.json": config})
    repository("repository", {"greeting": "hello\n"})


def put(name, content):
    path = SITE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def tarred(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def repository(name, files):
    """A bare repository with one commit."""
    path = SITE / name
    author = "test <test@allowed.example> 1700000000 +0000"
    lines = [f"commit refs/heads/master\ncommitter {author}\ndata 0\n"]
    lines += [f"M 644 inline {file}\ndata {len(text)}\n{text}\n" for file, text in files.items()]
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    for arguments, stdin in ((["init", "-q", "--bare", "-b", "master", path], ""), (
            ["-C", path, "fast-import", "--quiet"], "".join(lines))):
        subprocess.run(["git", *arguments], input=stdin.encode(), env=environment, check=True)


def answer(head, body):
    """The answer to a request: the head's bytes, and what has come of the body; None where there is nothing."""
    request, *lines = head.decode("latin-1").split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    method, target = request.split(" ")[:2]
    path, _, query = target.partition("?")
    parts = path.strip("/").split("/")
    if parts[-1] in ("git-upload-pack", "refs") or parts[-2:-1] == ["info"]:
        return of_git(method, path, query, fields, body)
    file = SITE.joinpath(*parts)
    file = file / "index.html" if file.is_dir() else file
    if ".." in parts or not file.is_file():
        return None
    kind = b"text/html" if file.suffix == ".html" else b"application/json"
    content = file.read_bytes().replace(b"@HOST@", fields["host"].encode())
    return b"Content-Type: %b\r\nContent-Length: %d\r\n\r\n" % (kind, len(content)) + content


def of_git(method, path, query, fields, body):
    """Has git answer, by CGI."""
    environment = {
        "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(SITE.absolute()), "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        "REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query, "CONTENT_LENGTH": str(len(body)),
        "CONTENT_TYPE": fields.get("content-type", ""), "HTTP_CONTENT_ENCODING": fields.get("content-encoding", ""),
        "GIT_PROTOCOL": fields.get("git-protocol", ""),
    }
    ran = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=True)
    return ran.stdout
