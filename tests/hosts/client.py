"""client.py WAY HOST: one request by one of Python's clients."""
import os, ssl, sys

way, host = sys.argv[1:]
ca = os.environ["CA"]
if way == "requests":
    import requests

    print(requests.get(f"https://{host}/", verify=ca, timeout=10).text)
elif way == "aiohttp":
    import aiohttp, asyncio

    async def get():
        async with aiohttp.ClientSession() as session:
            async with session.get(f"https://{host}/", ssl=ssl.create_default_context(cafile=ca)) as response:
                print(await response.text())

    asyncio.run(get())
elif way == "asyncio":
    import asyncio

    async def echo():
        # With several addresses, the next one is tried while the first has not answered.
        reader, writer = await asyncio.open_connection(host, 7, happy_eyeballs_delay=0.1)
        writer.write(b"echoed\n")
        print((await reader.readline()).decode())
        writer.close()

    asyncio.run(echo())
elif way == "grpc":
    import grpc

    credentials = grpc.ssl_channel_credentials(open(ca, "rb").read())
    channel = grpc.secure_channel(f"{host}:443", credentials)
    print(channel.unary_unary("/test.Greeter/Greet")(b"you", timeout=10).decode())
