"""Runs the cells of a notebook from top to bottom and writes their outputs into it.

    pip install nbclient ipykernel
    python python/run_notebook.py python/notebook.ipynb result.ipynb
"""

import pathlib
import sys

import nbclient
import nbformat

source, result = map(pathlib.Path, sys.argv[1:3])
notebook = nbformat.read(source, as_version=4)
resources = {"metadata": {"path": source.parent}}
nbclient.NotebookClient(notebook, timeout=120, resources=resources).execute()
nbformat.write(notebook, result)
