"""Compares our chat templates with transformers' on published templates, which are not part of this repository.

    $(tools/references/venv.sh templates) tools/references/check_chat_templates.py RENDER_CHATS
        [--llama_cpp REPOSITORY [--all]] [--write FILE] [--show 5]

RENDER_CHATS is the program of tests/support/render_chats.cc (target render_chats). The templates are those of
trl/chat_templates and, with --llama_cpp, those of supported families (with --all: of all families) in models/templates
of a git repository of llama.cpp (a bare one will do). Each renders 40 conversations; texts, the ranges that
{% generation %} marks, and the kinds of refusals must be equal. Ends with 1 if anything differs.
"""

import argparse
import datetime
import importlib.metadata
import json
import pathlib
import platform
import subprocess
import sys

from jinja2.exceptions import TemplateError, TemplateSyntaxError, SecurityError, UndefinedError
from transformers.utils.chat_template_utils import render_jinja_template

from chats import chats

FAMILIES = ("llama", "mistral", "ministral", "qwen", "qwq", "gemma", "phi", "olmo", "smollm")


def trl_templates():
    files = importlib.metadata.files("trl")
    folder = pathlib.Path(next(f for f in files if f.match("chat_templates/qwen3.jinja")).locate()).parent
    return [(f"trl/{path.name}", path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.jinja"))]


def llama_cpp_templates(repository, families):
    def git(*arguments):
        return subprocess.run(["git", "-C", repository, *arguments], check=True, capture_output=True).stdout.decode()

    names = git("ls-tree", "--name-only", "HEAD", "models/templates/").split()
    names = [name for name in names if name.endswith(".jinja")]
    plain = {name: name.lower().rsplit("/", 1)[1].removeprefix("llama-cpp-") for name in names}
    names = [name for name in names if any(family in plain[name] for family in families)]
    commit = git("rev-parse", "HEAD").strip()
    return commit, [(f"llama.cpp/{name.rsplit('/', 1)[1]}", git("show", f"HEAD:{name}")) for name in names]


def tessera_commit():
    here = pathlib.Path(__file__).parent
    return subprocess.run(["git", "-C", here, "rev-parse", "--short", "HEAD"], capture_output=True).stdout.decode().strip()


def byte_ranges(text, ranges):
    return [[len(text[:begin].encode()), len(text[:end].encode())] for begin, end in ranges]


def theirs(template, variables):
    """What transformers gives, in the form of render_chats."""
    given = dict(variables)
    messages = given.pop("messages")
    try:
        texts, ranges = render_jinja_template([messages], chat_template=template, return_assistant_tokens_mask=True,
                                              **given)
    except TemplateSyntaxError as error:
        return {"error": f"{type(error).__name__}: {error}", "is_refused_by_template": False}
    except (UndefinedError, SecurityError) as error:
        return {"error": f"{type(error).__name__}: {error}", "is_refused_by_template": False}
    except TemplateError as error:
        return {"error": f"{type(error).__name__}: {error}", "is_refused_by_template": type(error) is TemplateError}
    except Exception as error:  # a mistake of the template with these values
        return {"error": f"{type(error).__name__}: {error}", "is_refused_by_template": False}
    return {"text": texts[0], "generated": byte_ranges(texts[0], ranges[0])}


def with_reasoning_aliases(variables):
    """What render_jinja_template does to messages before it renders them."""
    messages = []
    for message in variables["messages"]:
        names = ("reasoning_content", "thinking", "reasoning")
        reasoning = next((message[name] for name in names if message.get(name) is not None), None)
        if reasoning is not None:
            message = {"thinking": reasoning, **message, "reasoning_content": reasoning}
        messages.append(message)
    return {**variables, "messages": messages, "tools": variables.get("tools"),
            "documents": variables.get("documents")}


def ours(program, template, cases):
    lines = [json.dumps({"template": template, "variables": with_reasoning_aliases(case)}) for case in cases]
    run = subprocess.run([program], input="\n".join(lines).encode(), capture_output=True)
    if run.returncode != 0:
        sys.exit(f"{program} ended with {run.returncode}: {run.stderr.decode()[-2000:]}")
    return [json.loads(line) for line in run.stdout.decode().split("\n")[:-1]]


def difference(our, their):
    """None, or what differs."""
    if "error" in our or "error" in their:
        if ("error" in our) != ("error" in their):
            return "only one refuses"
        return None if our["is_refused_by_template"] == their["is_refused_by_template"] else "kind of error"
    if our["text"] != their["text"]:
        return "text"
    return None if our["generated"] == their["generated"] else "generated ranges"


def check(program, name, template, shown):
    cases = chats()
    answers = ours(program, template, cases)
    counts = {"texts": 0, "refused": 0, "errors": 0, "ranges": 0, "different": 0}
    inexact = 0
    for number, (case, our) in enumerate(zip(cases, answers)):
        their = theirs(template, case)
        what = difference(our, their)
        if what is None:
            if "error" in their:
                counts["refused" if their["is_refused_by_template"] else "errors"] += 1
            else:
                counts["texts"] += 1
                counts["ranges"] += len(their["generated"])
                inexact += not our["is_exact"]
            continue
        counts["different"] += 1
        if shown > 0:
            shown -= 1
            print(f"{name}, conversation {number}: {what}\n  ours   {json.dumps(our, ensure_ascii=False)[:1500]}\n"
                  f"  theirs {json.dumps(their, ensure_ascii=False)[:1500]}", file=sys.stderr)
    note = f"   {inexact} inexact" if inexact else ""
    return counts, (f"{name:70}{counts['texts']:6}{counts['refused']:9}{counts['errors']:8}{counts['ranges']:8}"
                    f"{counts['different']:11}{note}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--llama_cpp")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--show", type=int, default=5)
    options = parser.parse_args()
    templates = trl_templates()
    sources = f"trl {importlib.metadata.version('trl')}: {len(templates)} templates"
    if options.llama_cpp:
        commit, more = llama_cpp_templates(options.llama_cpp, ("",) if options.all else FAMILIES)
        templates += more
        sources += f"\nllama.cpp {commit}: {len(more)} templates"
        sources += "" if options.all else f" of {', '.join(FAMILIES)}"
    num_chats = len(chats())
    lines = [
        "Chat templates rendered by Tessera and by transformers.",
        f"command: check_chat_templates.py render_chats --llama_cpp REPOSITORY{' --all' if options.all else ''}",
        f"tessera {tessera_commit()}; {datetime.date.today()}; {platform.machine()}, Python {platform.python_version()}",
        f"transformers {importlib.metadata.version('transformers')}, jinja2 {importlib.metadata.version('jinja2')}",
        sources,
        f"{num_chats} conversations each: tools/references/chats.py",
        "",
        "texts: equal byte by byte, with equal ranges of {% generation %}; refused: both by raise_exception; errors: both",
        "otherwise (an undefined value, a wrong type); ranges: how many of them were compared.",
        "",
        f"{'template':70}{'texts':>6}{'refused':>9}{'errors':>8}{'ranges':>8}{'different':>11}",
    ]
    total = {}
    for name, template in templates:
        counts, line = check(options.program, name, template, options.show)
        lines.append(line)
        total = {key: total.get(key, 0) + value for key, value in counts.items()}
    lines.append(f"{f'{len(templates)} templates':70}{total['texts']:6}{total['refused']:9}{total['errors']:8}"
                 f"{total['ranges']:8}{total['different']:11}")
    text = "\n".join(lines) + "\n"
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    sys.exit(1 if total["different"] else 0)


if __name__ == "__main__":
    main()
