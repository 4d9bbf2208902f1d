"""Estimates as pandas data frames, and predictions or posts of your own model back into the stream.

    pip install ./python
    gqlstream run --classes left,right --listen 127.0.0.1:4222
    python -m gqlstream nats://127.0.0.1:4222 http://127.0.0.1:8090

notebook.ipynb goes through it step by step, docs/events.md is the reference of every field.
"""

import asyncio
import json
import sys
import urllib.parse
import urllib.request
import uuid

import nats
import pandas as pd
import pyarrow as pa


def get(page, path, **query):
    """One answer of the HTTP API; docs/api.md lists the paths."""
    with urllib.request.urlopen(f"{page}{path}?{urllib.parse.urlencode(query)}") as reply:
        return json.load(reply)


def latest(page):
    """The latest estimates over HTTP: a row for each community and class.

    moved and revised are the two parts of the change since the record before. A suppressed
    community has None for its shares.
    """
    classes, rows = get(page, "/api/v1/info")["classes"], []
    each = ["prevalence", "low", "high", "moved", "se_change", "revised", "se_revised"]
    while found := get(page, "/api/v1/communities", limit=1000, offset=len(rows))["communities"]:
        for e in (row["estimate"] for row in found):
            lists = {name: e.get(name) or [None] * len(classes) for name in each}
            rows.append(e | {"class": classes} | lists)
    shown = ["community", "time", "members", "class", *each, "model_version", "flags"]
    return pd.DataFrame(rows, columns=shown).explode(["class", *each], ignore_index=True)


def confusion(page):
    """Which class the classifier takes for which: labels by true and predicted class.

    The community is None for all labels; rows with a community have its members' labels.
    """
    classes, found = get(page, "/api/v1/info")["classes"], get(page, "/api/v1/classifier")
    parts = [{"community": None, "counts": found["confusion"]["all"]}]
    rows = [
        {"community": part["community"], "class": true, "predicted": said, "labels": labels}
        for part in parts + found["confusion"]["communities"]
        for true, counts in zip(classes, part["counts"])
        for said, labels in zip(classes, counts)
    ]
    return pd.DataFrame(rows, columns=["community", "class", "predicted", "labels"])


async def read(nc, stream, subject):
    """Everything on a subject of a stream, in order, as one frame with a row for each event."""
    stored = (await nc.jetstream().stream_info(stream, subjects_filter=subject)).state.subjects
    tail = await nc.jetstream().subscribe(subject, stream=stream, ordered_consumer=True)
    frames = []
    for _ in range(sum((stored or {}).values())):
        data = (await tail.next_msg(timeout=10)).data
        if data.startswith(b"\xff\xff\xff\xff"):  # an Arrow stream
            frames.append(pa.ipc.open_stream(data).read_pandas())
        else:  # one event, an array of them, or one a line
            text = data.decode().strip()
            rows = json.loads(text) if text[0] == "[" else map(json.loads, text.split("\n"))
            frames.append(pd.DataFrame(rows))
    await tail.unsubscribe()
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


async def publish(nc, kind, frame):
    """Publishes a frame whose columns are the fields of the kind, 4,000 events a message."""
    run, table = uuid.uuid4(), pa.Table.from_pandas(frame, preserve_index=False)
    if "probabilities" in frame:
        fixed = pa.list_(pa.float64(), len(frame["probabilities"].iloc[0]))
        column = frame.columns.get_loc("probabilities")
        values = table["probabilities"].cast(fixed)
        table = table.set_column(column, "probabilities", values)
    for i in range(0, len(table), 4000):
        with pa.ipc.new_stream(sink := pa.BufferOutputStream(), table.schema) as writer:
            writer.write_table(table[i : i + 4000])
        # Returns when the events are stored. The id makes a message that is sent again harmless.
        content = "application/vnd.apache.arrow.stream"
        headers = {"Content-Type": content, "Nats-Msg-Id": f"{run}/{i}"}
        await nc.jetstream().publish(f"gql.{kind}", sink.getvalue().to_pybytes(), headers=headers)


def posts(frame, model):
    """Makes events for publish(nc, "post", ...) from the posts of a collector.

    frame has the columns author, time and text, and may have reply_to, repost_of and id. model
    returns the class probabilities of each text."""
    fields = [name for name in ["author", "time", "reply_to", "repost_of", "id"] if name in frame]
    return frame[fields].assign(probabilities=[list(p) for p in model(frame["text"])])


def votes(edges, labels, classes):
    """Replace this small model by yours. It counts the labels of a vertex's neighbours, and half a
    vote for each class."""
    reverse = edges[["dst", "src"]].set_axis(["src", "dst"], axis=1)
    edges = pd.concat([edges[["src", "dst"]], reverse])
    # A class is a name or an index.
    named = labels[["vertex", "class"]].replace({"class": dict(enumerate(classes))})
    seen = edges.merge(named, left_on="dst", right_on="vertex")
    p = pd.crosstab(seen["src"], seen["class"])
    p = p.reindex(index=edges["src"].unique(), columns=classes, fill_value=0) + 0.5
    p = p.div(p.sum(axis=1), axis=0)
    votes = {"vertex": p.index, "probabilities": p.to_numpy().tolist()}
    return pd.DataFrame({**votes, "version": "votes-1"})


async def main(server, page):
    nc = await nats.connect(server)
    print(latest(page).to_string())
    edges, labels = await read(nc, "GQL", "gql.edge"), await read(nc, "GQL", "gql.label")
    # Labels that make a model must not measure its errors, so they change their role.
    train = labels.sample(frac=0.5, random_state=1)
    await publish(nc, "label", train[["vertex", "class"]].assign(role="train"))
    await publish(nc, "prediction", votes(edges, train, get(page, "/api/v1/info")["classes"]))
    while not (now := latest(page))["model_version"].eq("votes-1").all():
        await asyncio.sleep(0.1)
    print(now.to_string())
    history = await read(nc, "GQL_ESTIMATES", "gqlest.estimate.>")
    print(len(history), "records of", history["community"].nunique(), "communities")
    await nc.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
