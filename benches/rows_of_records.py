"""How records keep their rows: JSON with a row a line, so that a record is as long as what it has measured."""

import json

# What is no longer stands in one line.
WIDTH = 300


def text(value, indent=""):
    """A value as JSON, broken only where it is too long for a line."""
    line = json.dumps(value)
    if len(line) <= WIDTH or not isinstance(value, (dict, list)) or not value:
        return line
    deeper = indent + " "
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {text(item, deeper)}" for key, item in value.items()]
    else:
        items = [text(item, deeper) for item in value]
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return f"{opened}\n" + ",\n".join(deeper + item for item in items) + f"\n{indent}{closed}"


def write(path, value):
    path.write_text(text(value) + "\n", encoding="utf-8")
