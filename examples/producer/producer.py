"""Publishes a few events of every kind to a gqlstream log, each kind in each of the
three forms of a message.

    pip install nats-py pyarrow
    gqlstream run --classes left,right --listen 127.0.0.1:4222
    python examples/producer/producer.py nats://127.0.0.1:4222

Events are assertions ("the weight is 2"), so sending one twice changes nothing.
docs/events.md is the reference of every field.
"""

import asyncio
import json
import sys
import uuid

import nats
import pyarrow as pa

EVENTS = {
    "edge": """
        {"src": "ann", "dst": "bob", "weight": 2, "time": 1772366400.5}
        {"src": "bob", "dst": "cem", "time": 1772366400.5}
        {"op": "remove", "src": "ann", "dst": "cem", "time": 1772366401}
    """,
    "label": """
        {"vertex": "ann", "class": "left", "time": 1772366400}
        {"vertex": "cem", "class": "right", "role": "train", "time": 1772366400}
    """,
    "prediction": """
        {"vertex": "ann", "probabilities": [0.9, 0.1], "version": "v3", "time": 1772366400}
        {"vertex": "bob", "probabilities": [0.3, 0.7], "version": "v3", "time": 1772366400}
    """,
    "member": """
        {"community": "berlin", "vertex": "ann", "multiplicity": 1, "time": 1772366400}
        {"community": "berlin", "vertex": "bob", "multiplicity": 3, "time": 1772366400}
        {"op": "leave", "community": "berlin", "vertex": "cem", "time": 1772366401}
    """,
    "vertex": """
        {"vertex": "ann", "attributes": {"language": "de", "age": 31}, "time": 1772366400}
        {"vertex": "bob", "attributes": {"language": "tr"}, "time": 1772366400}
    """,
    "control": """
        {"op": "flush"}
    """,
}

# The same events as tables. Columns are found by name, optional ones may be left out,
# and a null is the default of its field. In a vertex table an attribute is a column.
SCHEMAS = {
    "edge": pa.schema([
        ("op", pa.string()),
        ("src", pa.string()),
        ("dst", pa.string()),
        ("weight", pa.float64()),
        ("time", pa.float64()),
    ]),
    "label": pa.schema([
        ("vertex", pa.string()),
        ("class", pa.string()),
        ("role", pa.string()),
        ("time", pa.float64()),
    ]),
    "prediction": pa.schema([
        ("vertex", pa.string()),
        ("probabilities", pa.list_(pa.float64(), 2)),
        ("version", pa.string()),
        ("time", pa.float64()),
    ]),
    "member": pa.schema([
        ("op", pa.string()),
        ("community", pa.string()),
        ("vertex", pa.string()),
        ("multiplicity", pa.int64()),
        ("time", pa.float64()),
    ]),
    "vertex": pa.schema([
        ("vertex", pa.string()),
        ("language", pa.string()),
        ("age", pa.float64()),
        ("time", pa.float64()),
    ]),
    "control": pa.schema([
        ("op", pa.string()),
    ]),
}


def as_json(events):
    return json.dumps(events).encode()


def as_ndjson(events):
    return "\n".join(json.dumps(event) for event in events).encode()


def as_arrow(schema, events):
    """An uncompressed Arrow stream: put 1,000 to 4,000 rows into a message."""
    rows = [event | event.get("attributes", {}) for event in events]
    table = pa.Table.from_pylist(rows, schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


async def main(url):
    connection = await nats.connect(url)
    stream = connection.jetstream()
    producer, count = f"example-{uuid.uuid4()}", 0
    for kind, lines in EVENTS.items():
        events = [json.loads(line) for line in lines.split("\n") if line.strip()]
        for form, payload in {
            "application/json": as_json(events),
            "application/x-ndjson": as_ndjson(events),
            "application/vnd.apache.arrow.stream": as_arrow(SCHEMAS[kind], events),
        }.items():
            count += 1
            # Returns when the message is stored. The id makes the broker drop it if it
            # is sent again within two minutes.
            await stream.publish(
                f"gql.{kind}",
                payload,
                headers={"Content-Type": form, "Nats-Msg-Id": f"{producer}/{count}"},
            )
    await connection.close()
    print(f"published {count} messages")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "nats://127.0.0.1:4222"))
