"""Schemathesis compares the CSV of the API with its schema as text."""

import schemathesis


@schemathesis.deserializer("text/csv")
def text(ctx, response):
    return response.text
