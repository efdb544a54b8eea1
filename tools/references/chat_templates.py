"""Writes tests/data/templates/: what transformers makes of small templates of our own, case by case.

    $(tools/references/venv.sh templates) tools/references/chat_templates.py

Each group becomes a file of cases: a template, its variables where it has some, and the text, or the kind of refusal.
"""

import importlib.metadata
import json
import pathlib

from template_cases import GROUPS, VARIABLES
from check_chat_templates import theirs

OUT = pathlib.Path(__file__).parents[2] / "tests/data/templates"


def case_of(template):
    answer = theirs(template, VARIABLES)
    if "error" in answer:
        return {"template": template, "refused_by_template": answer["is_refused_by_template"]}
    case = {"template": template, "text": answer["text"]}
    return {**case, "generated": answer["generated"]} if answer["generated"] else case


def main():
    OUT.mkdir(exist_ok=True)
    for name, templates in GROUPS.items():
        content = {"made_by": f"tools/references/chat_templates.py, transformers "
                              f"{importlib.metadata.version('transformers')}, jinja2 "
                              f"{importlib.metadata.version('jinja2')}",
                   "variables": VARIABLES, "cases": [case_of(template) for template in templates]}
        path = OUT / f"{name}.json"
        path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        refused = sum("text" not in case for case in content["cases"])
        print(f"{path}: {len(content['cases'])} cases, {refused} of them refused, {path.stat().st_size} bytes")


main()
