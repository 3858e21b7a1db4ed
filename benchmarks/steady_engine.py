"""An engine that computes nothing: a server of OpenAI's protocol whose answers come at one steady pace.

    python -m benchmarks.steady_engine PORT MILLISECONDS

Every answer has as many tokens as its request allows, one each MILLISECONDS, however many are asked for at once.
"""

import argparse
import asyncio
import json
import time

HEADERS = "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nConnection: close\r\n\r\n"
MODELS = {"object": "list", "data": [{"id": "steady", "max_model_len": 8192}]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("milliseconds", type=float)
    asked = parser.parse_args()
    port, gap = asked.port, asked.milliseconds / 1000

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        if head.startswith("post /v1/"):
            length = int(head.split("content-length:")[1].split("\r\n")[0])
            await stream(writer, json.loads(await reader.readexactly(length))["max_tokens"], gap)
        elif head.startswith("get /v1/models"):
            writer.write((HEADERS.format("application/json") + json.dumps(MODELS)).encode())
        else:
            writer.write(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(serve())


async def stream(writer: asyncio.StreamWriter, n_tokens: int, gap: float) -> None:
    """Tokens by the clock: one that was late delays none after it."""
    began = time.perf_counter()
    writer.write(HEADERS.format("text/event-stream").encode())
    for number in range(1, n_tokens + 1):
        await asyncio.sleep(max(0.0, began + number * gap - time.perf_counter()))
        ends = "length" if number == n_tokens else None
        send(writer, choices=[{"index": 0, "delta": {"content": f" {number}"}, "finish_reason": ends}])
        await writer.drain()
    send(writer, choices=[], usage={"prompt_tokens": 9, "completion_tokens": n_tokens})
    writer.write(b"data: [DONE]\n\n")


def send(writer: asyncio.StreamWriter, **values: object) -> None:
    writer.write(b"data: " + json.dumps(values).encode() + b"\n\n")


if __name__ == "__main__":
    main()
