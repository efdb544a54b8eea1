"""Small templates of our own with the constructs of published chat templates, in groups of one thought each."""

VARIABLES = {
    "messages": [
        {"role": "system", "content": " Be brief. "},
        {"role": "user", "content": "What's \"x\"?\n\u4F60\u597D \U0001F999"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"type": "function", "function": {"name": "look", "arguments": {"b": [1, 2.0, None], "a": "\u00E9<&>'"}}}]},
        {"role": "tool", "content": "42"},
        {"role": "assistant", "content": "It is 42."},
    ],
    "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "required": ["a"],
                                                                             "properties": {"a": {"type": "string"}}}}}],
    "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True,
    "numbers": [3, 1, 2, 1], "words": ["pear", "Apple", "fig", "apple"], "pairs": [["a", 1], ["b", 2]],
    "mapping": {"b": 1, "a": 2, "C": 3}, "empty": [], "nothing": None, "yes": True, "no": False, "half": 0.5,
    "rows": [{"name": "x", "n": 2, "tags": ["p", "q"]}, {"name": "Y", "n": 1}, {"name": "y", "n": 3, "tags": []}],
    "tree": [{"v": 1, "c": [{"v": 2, "c": [{"v": 3}]}, {"v": 4}]}, {"v": 5}],
}


def printed(expressions):
    return ["{{ " + line.strip() + " }}" for line in expressions.strip().split("\n")]


VALUES = printed(r"""
['a', "it's", 'say "hi"', 'both \' and "', '\n\r\t\\', 'é你🦙']
none
true, false, True, none
1
1.0, 0.0001, 123456789.123
'a' "b" 'c'
[1, 2.0, none, true, ['x', []], {}]
(1,), (), (1, 2), [(1, 2)]
messages[2]
nothing, yes, half, -0.0, -1
missing, [missing], missing is defined
1 if false
'' ~ none ~ 1 ~ 2.50 ~ [1] ~ missing ~ true
range(3)|list, range(5, 0, -2)|list, range(0)|list
100000000000000000000.0, 0.1 + 0.2, 1/3
""")

OPERATORS = printed(r"""
'héllo'[1], 'hél你o'[1:4], 'é你x'[::-1]
1 + 2 * 3 - 4 / 2, 7 // 2, -7 // 2, 7 % 3, -7 % 3, 7 % -3
1 + true, true * 3, 1.5 + 1, -true
'a' + 'b', 'ab' * 3, 3 * 'ab', 'x' * -1, [1] + [2], (1,) + (2,)
1 == 1.0, 1 != 2, '1' == 1, 'a' < 'b'
true == 1, none == none, none == false, {} == {}, {'a': 1} == {'a': 1.0}, [1] == (1,), missing == missing, missing == none
1 in [1, 2], 3 not in [1, 2], 'a' in 'cat', 'x' in mapping, 'a' in mapping, 1 in (2, 1), '' in '', 1 in [true]
not true, not 0, not '', not [], not none, not missing, not 'a' in 'b'
1 and 0, 0 and 1, 0 or 'x', '' or none, 1 or 2 and 0, not 1 or 2, none and missing.x
'a' if yes else 'b', 'a' if no else 'b' if yes else 'c', ('x' if no), [1 if yes else 2]
1 ~ 2 + 3, 1 + 2 ~ 3, 'a' ~ 'b' * 2, 'a' ~ 1 == 'a1', 2 * 3 ~ 4
numbers[0], numbers[-1], numbers[9], numbers['x'], 'abc'[1], 'abc'[-1], mapping['b'], mapping.b
numbers[1:], numbers[:2], numbers[::2], numbers[::-1], numbers[-2:], numbers[5:], numbers[3:0:-1], numbers[:-1], numbers[10:-10:-1]
'abc'[::-1], 'abcdef'[::2], (1, 2, 3)[1:]
messages[0].role, messages[0]['role'], messages[1:][0].role, messages[-1].nope, messages.nope, pairs[0][1]
none.x, none['x'], (1).x, 'abc'.nope, 'abc'['nope'], [][0], {}[1]
1 is odd, 2 is even
[1, 2, 3,], {'a': 1,}, (1, 2,)
[x for x in y]
1 +
1 / 0
1 // 0.0
1 % 0
'a' + 1
1 + 'a'
[] + ()
-'a'
1 < 'a'
none < 1
[1] < [none]
missing + 1
1 - missing
missing.x
missing['x']
missing()
-missing
1 < missing
missing in [1]
1 in missing
1 in 5
1 in 'abc'
'%d' % 'x'
'%s %s' % 'x'
'%s' % (1, 2)
none()
'a'()
{[]: 1}
numbers[::0]
missing[1:]
'a' * 'b'
10 ** 400.0
0 ** -1
""")

METHODS = printed(r"""
'straße ǆ ﬁ'.upper(), 'İΑΣ Σ Σx'.lower(), 'ǆx'.capitalize(), 'éxé'.strip('é')
' a b '.strip(), ' a b '.lstrip() ~ '|', ' a b '.rstrip() ~ '|', 'xxaxx'.strip('x'), 'abcba'.lstrip('ab'), 'éxé'.strip('é')
'a,b,,c'.split(','), 'a b c'.split(' ', 1), 'abc'.split('x'), ''.split('x'), 'a--b--c'.split('--', maxsplit=1)
'abc'.startswith('ab'), 'abc'.startswith(('x', 'a')), 'abc'.endswith('bc'), 'abc'.endswith(('x', 'y')), 'abc'.startswith('')
'banana'.replace('a', 'o'), 'banana'.replace('a', 'o', 2), 'abc'.replace('b', '')
'Hello wOrld'.upper(), 'Hello wOrld'.lower(), 'hello wORLD x1y'.title(), 'hELLO'.capitalize(), "they're bill's".title()
', '.join(['a', 'b']), ''.join(words), '-'.join('abc'), '-'.join(mapping)
'{} {}'.format(1, 'a')
'{}'.format(none), '{}'.format([1])
mapping.get('b'), mapping.get('x'), mapping.get('x', 7), mapping.keys()|list, mapping.values()|list, mapping.items()|list
mapping.keys()|length, 'a' in mapping.keys(), mapping.items()|first, mapping.items()[0]
numbers.append(1)
mapping.update({})
mapping.pop('a')
numbers.nope is defined
'abc'.index('x')
'abc'.split('')
'-'.join([1])
'abc'.startswith(1)
numbers.index(99)
'{}'.format()
'{x}'.format(1)
'{'.format()
'abc'.__class__
'abc'.__class__.__mro__
''['__class__']
'a'.center(3, 'xy')
'a'.replace('a')
'a'.strip(1)
""")

FILTERS = printed(r"""
numbers|reverse|list, mapping|reverse|list, 'aé'|reverse, numbers|sort|reverse|first
'hé'|length, {'b': [1, 2.0, none, true], 'a': 'é<&>"\\\n'}|tojson, 'é🦙'|tojson(ensure_ascii=true)
' x '|trim, 'xyx'|trim('x'), 5|trim, none|trim, missing|trim, '\n a\n'|trim
'abc'|upper, 'ABC'|lower, 'aBC'|capitalize, 12|upper
'hello'|replace('l', 'L'), 'hello'|replace('l', 'L', 1)
5|string, none|string, [1]|string, missing|string, 'a'|string, 1.0|string
'12'|int, '12.7'|int, 'x'|int, 'x'|int(7), 3.9|int, -3.9|int, true|int, none|int, ' 5 '|int, ''|int, [1]|int(3), '1e3'|int, '-5'|int, '+5'|int
numbers|length, mapping|count, missing|length, range(4)|length, ''|length
numbers|first, numbers|last, ''|first, []|first, 'abc'|first, 'abc'|last, mapping|first, mapping|last, missing|first, range(3)|last
numbers|list, 'abc'|list, mapping|list, missing|list, range(3)|list, numbers|map('string')|list
numbers|join, numbers|join(', '), rows|join('-', attribute='name'), rows|join('-', 'n'), 'abc'|join('.'), []|join('x'), [1, none, missing, true]|join('|'), missing|join('x')
missing|default('d'), none|default('d'), none|default('d', true), ''|default('d', boolean=true), missing|d, missing.x|d if false else 'e', missing|default(none), 0|d(1)
numbers|sort, numbers|sort(reverse=true), words|sort, words|sort(case_sensitive=true), rows|sort(attribute='n')|map(attribute='name')|join, 'cab'|sort, mapping|sort
words|unique|list, words|unique(true)|list, numbers|unique|join, rows|unique(attribute='name')|map(attribute='n')|list
numbers|min, numbers|max, words|min, words|max(true), rows|max(attribute='n'), []|min, 'hello'|max
mapping|dictsort, mapping|dictsort(true), mapping|items|list, missing|items|list
rows|map(attribute='name')|list, rows|map(attribute='tags.0')|list, rows|map(attribute='nope', default='-')|list, words|map('upper')|list, words|map('replace', 'p', 'P')|list, numbers|map('default', 5)|list, pairs|map(attribute=0)|join, rows|map(attribute='tags', default=none)|list
numbers|select|list, numbers|select('odd')|list, numbers|select('gt', 1)|list, numbers|select('in', [1, 2])|list, words|select('==', 'fig')|list, [0, 1, '', 'a', none]|select|list
numbers|reject('odd')|list, numbers|reject|list, words|reject('equalto', 'fig')|list
rows|selectattr('tags')|map(attribute='name')|list, rows|selectattr('n', 'gt', 1)|list|length, rows|selectattr('tags', 'defined')|list|length, rows|rejectattr('tags')|list|length, rows|rejectattr('name', 'equalto', 'x')|map(attribute='name')|join, messages|selectattr('role', 'equalto', 'user')|list|length
'a\nb\n\nc'|indent, 'a\nb'|indent(2, true), 'a\n\nb'|indent(2, blank=true), ''|indent, 'a\n'|indent(first=true)
'<b>'|safe ~ ''
mapping|tojson, mapping|tojson(sort_keys=true), {'a': [1, {'b': []}], 'c': {}}|tojson(indent=2), [1, 2]|tojson(separators=(',', ':')), [1, 2]|tojson(indent=0), (1, 2)|tojson, 1.0|tojson, {'a': 1, 'b': 2}|tojson(indent=2, separators=('; ', ' = '))
messages[2].tool_calls[0].function.arguments|tojson
tools|tojson(indent=4)
missing|default('x')|tojson
words|map('length')|list, numbers|map('tojson')|join(' '), words|map('first')|map('upper')|join
(numbers|map('string')|list)[0], [3, 1]|sort|first
'a'|upper|lower ~ 'B'|lower, 'a' ~ 'b'|upper, 1 + 2|string|length
[missing]|map('default', 'x')|list, [[3, 4]]|map('last')|list
('<b>'|safe) + '<i>' ~ '<u>', ('<'|safe) * 2, ('<b'|safe)[0] + '<', ('<'|safe|string) + '<', [1, '<']|join('<'|safe) + '<', ('<'|safe) == '<', ('<'|safe ~ '') + '<', {'<'|safe: '<'|safe}['<'] + '<'
missing|tojson
range(3)|tojson
numbers|map('string')|tojson
{(1, 2): 3}|tojson
5|length
none|length
5|list
5|first
none|join
numbers|map('string')|length
numbers|select('odd')|last
[1, 'a']|sort
[none, 1]|sort
[1, 'a']|min
[1, 'a']|sum
missing|upper|nope
5|nope
5 is nope
'x' if true else 5|nope
5|map|list
numbers|map('nope')|list
numbers|select('nope')|list
'a'|round
'a'|abs
5|items|list
mapping|dictsort(by='x')
'a'|indent(1, 2, 3, 4)
'a'|trim(nope=1)
'hello'|truncate(1)
missing|last
missing|round
'a'|tojson(nope=1)
[1]|join(1, 2, 3)
""")

TESTS = printed(r"""
1 is eq(1), 1 is ne(2), 2 is gt 1, 'a' is in('cat')
missing is defined, yes is defined, nothing is defined, missing is undefined, missing is not defined, messages[0].nope is defined, messages[0].role is defined
none is none, 0 is none, missing is none, nothing is not none
'a' is string, 1 is string, missing is string, none is string, [] is string
{} is mapping, [] is mapping, missing is mapping, mapping.items() is mapping
[] is sequence, {} is sequence, 'a' is sequence, 1 is sequence, () is sequence, none is sequence, missing is sequence, numbers|map('string') is sequence
[] is iterable, {} is iterable, 'a' is iterable, 1 is iterable, none is iterable, missing is iterable, range(2) is iterable, mapping.items() is iterable, (numbers|map('string')) is iterable
1 is number, 1.5 is number, true is number, '1' is number, 1 is integer, true is integer, 1.0 is integer, 1.0 is float, 1 is float
true is boolean, 1 is boolean, false is boolean, true is true, 1 is true, false is false, 0 is false
1 is odd, 2 is even, 1 is not odd, -1 is odd
1 is eq 1, 1 is ne 2, 1 is lt 2, 2 is gt 1, 1 is le 1, 1 is ge 2
1 is in [1], 'a' is in 'cat', 'x' is not in mapping, 1 is in([2])
yes is true and no is false, yes is true or missing.x is defined, not yes is false
1 is odd and 2 is even or 3 is even, (2 is even) == true
messages is iterable and messages is not string and messages is not mapping
loop is defined, caller is defined, varargs is defined
'a' is odd
missing is odd
none is divisibleby 2
1 is lt 'a'
1 is in 5
1 is odd is even
""")

STATEMENTS = [
    "{% if yes %}a{% elif no %}b{% else %}c{% endif %}|{% if no %}a{% elif yes %}b{% endif %}|{% if no %}{% else %}c{% endif %}",
    "{% set a = 1 %}{% set b, c = 2, 3 %}{{ a }}{{ b }}{{ c }}{% set a = a + 1 %}{{ a }}",
    "{% set a, b = (1, 2) %}{{ a + b }}",
    "{% set x %}text {{ 1 + 1 }}{% endset %}[{{ x }}]{% set y | upper | replace('A', 'o') %}abc{% endset %}{{ y }}",
    "{% set ns = namespace(n=0, l=[]) %}{% for i in numbers %}{% set ns.n = ns.n + i %}{% set ns.l = ns.l + [i] %}"
    "{% endfor %}{{ ns.n }} {{ ns.l }} {{ ns['n'] }} {{ ns.nope is defined }}",
    "{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}",
    "{% set x = 1 %}{% if yes %}{% set x = 2 %}{% endif %}{{ x }}{% if no %}{% set messages = 0 %}{% endif %}{{ messages|length }}",
    "{% for i in [1, 2] %}{% if loop.first %}{% set y = 7 %}{% endif %}{{ y }},{% endfor %}{{ y }}",
    "{% for k, v in mapping.items() %}{{ k }}={{ v }};{% endfor %}{% for k in mapping %}{{ k }}{% endfor %}",
    "{% for a, b in [[1, [2, 3]]] %}{{ a }}{{ b }}{% endfor %}{% for x in 'h\u00e9' %}[{{ x }}]{% endfor %}",
    "{% for x in empty %}a{% endfor %}|{% for x in missing %}a{% endfor %}",
    "{% for x in numbers if x > 1 %}{{ loop.index }}:{{ x }}{{ ',' if not loop.last }}{% endfor %}",
    "{% for x in numbers %}{{ loop.index0 }}{{ loop.index }}{{ loop.revindex0 }}{{ loop.revindex }}{{ loop.first }}"
    "{{ loop.last }}{{ loop.previtem }}-{{ loop.nextitem }};{% endfor %}",
    "{% for x in [1, 2] %}{% set outer = loop %}{% for y in 'ab' %}{{ outer.index }}{{ loop.index }} {% endfor %}{{ loop.index }}{% endfor %}",
    "{% for x in numbers %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}|{% for x in numbers %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% set ns = namespace(stop=false) %}{% for x in numbers if not ns.stop %}{{ x }}{% if x == 1 %}{% set ns.stop = true %}{% endif %}{% endfor %}",
    "{% set ns = namespace(stop=false) %}{% for x in numbers if not ns.stop %}{{ x }}{{ loop.last }}{% if x == 1 %}{% set ns.stop = true %}{% endif %}{% endfor %}",
    "{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, c=5) }}|{{ m(b=3, a=9) }}|{{ m() }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1)|upper }}",
    "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
    "{% macro m() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}{% set x = 2 %}{{ m() }}",
    "{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% macro m() %}{% set inner = 5 %}{{ inner }}{% endmacro %}{{ m() }}{{ inner }}",
    "{% macro m(caller=1) %}{{ caller }}{% endmacro %}{{ m() }}{{ m(2) }}",
    "{% filter upper %}a{{ 'b' }}{% endfilter %}{% filter trim | replace('x', 'y') %}  x {% endfilter %}",
    "{% set g = numbers|map('string') %}{{ g|first }}{{ g|join }}{{ g|list }}",
    "{# comment {{ x }} #}a{#- b -#} c {%- if yes -%} d {%- endif -%} e",
    "{{ '}}' }}{{ '%}' }}{{ {'a': {'b': 1}}.a }}{{ {'a': {}} }}",
    "{{ raise_exception('no: ' ~ messages|length) }}",
    "{% if messages[0].role != 'user' %}{{ raise_exception('first') }}{% endif %}",
    "{{ strftime_now('%%') }}{{ strftime_now('') }}{{ strftime_now('x')|length }}",
    "{% for x in 5 %}{% endfor %}", "{% for a, b in [1] %}{% endfor %}", "{% for a, b in [[1]] %}{% endfor %}",
    "{% set a, b = 1, 2, 3 %}", "{% set missing.x = 1 %}", "{% set mapping.x = 1 %}", "{% set ns = namespace() %}{% set ns._x = 1 %}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "{{ range(100001) }}",
    "{{ loop.index }}", "{% for x in [1] %}{{ loop(x) }}{% endfor %}",
    "{% if %}{% endif %}", "{% for x in %}{% endfor %}", "{% endif %}", "{% if yes %}", "{{ 1", "{{ }}", "{% nope %}",
    "{% set x %}", "{{ 'a }}", "{# open", "{{ (1 }}", "{{ 1 ] }}", "{% macro m(a=1, b) %}{% endmacro %}",
    "{% break %}", "{% include 'x' %}", "{% extends 'x' %}", "{% from 'x' import y %}", "{{ a b }}", "{% set 1 = 2 %}",
    "{% set true = 2 %}", "{{ f(a=1, 2) }}", "{{ 1 ! 2 }}", "{{ x.1a }}", "{% else %}",
]

WHITE_SPACE = [
    "a\n{% if yes %}\nb\n{% endif %}\nc\n", "a\n  {% if yes %}  \n  b\n  {% endif %}\nc\n\n", "  {% if yes %}x{% endif %}  \n",
    "a {% if yes %} b {% endif %} c", "a\n  {{ 'b' }}\n  c", "a\n  {{- 'b' -}}\n  c", "a  {%- if yes -%}  b  {%- endif -%}  c",
    "a\n\t {# comment #}\nb", "a {# comment #}\nb",
    "a\n  {#- c -#}\n b", "{% if yes %}\n\n\nx{% endif %}", "{{ 'a' }}\n{{ 'b' }}\n", "x\r\n{% if yes %}\r\ny\r\n{% endif %}\r\nz\r\n",
    "x\ry\r\nz", "\n\n", "\n", "", "  ", "a\n", "{{ 'a\nb' }}", "{%- set a = 1 -%}\n\n x", "\u00a0{%- if yes %}x{% endif %}",
    "\u2003\n{%- if yes %}x{% endif -%}\u2003\ny", "  {% set a = 1 %}  {% set b = 2 %}  \nx",
    "a{%if yes%}b{%endif%}c", "{%-if yes-%} b {%-endif-%}",
    "{{-1}} {{- 1}}", "{{ 1 -}} \n x", "{% for i in [1, 2] %}\n  {{ i }}\n{% endfor %}\nz", "{% for i in [1, 2] -%}\n  {{ i }}\n{%- endfor %}\nz",
    "{% generation %}\na\n{% endgeneration %}\nb", "  {% generation %}a{% endgeneration %}  ", "{{ 'x' }}{# c #}\n  {# d #}\n  y",
    "x\n   {%- if yes %}\n   y\n   {%- endif %}\n", "{% if yes -%}\n\n  x  \n\n{%- endif %}\n\n",
    "a\n  {% if yes %}b{% endif %}  {% if yes %}c{% endif %}\nd", "{% set x = 'a' %}  {{ x }}", "\t{% if yes %}\n\tx\n\t{% endif %}",
]

CHATS = [
    "{% for m in messages %}{{ '<|' ~ m.role ~ '|>\\n' ~ m['content'] | trim ~ eos_token ~ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}",
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{{ eos_token }}"
    "{% endgeneration %}{% else %}[{{ m.content }}]{% endif %}{% endfor %}",
    "{% for m in messages -%}\n{% if m.role == 'assistant' -%}\n{% generation -%}\n{{ m.content }}\n{%- endgeneration %}\n"
    "{%- else %}{{ m.content }} \u4F60\u597D\n{% endif %}\n{% endfor %}",
    "{% macro turn(m) %}{% generation %}{{ m.content }}{% endgeneration %}{% endmacro %}{% for m in messages %}x{{ turn(m) }}{% endfor %}",
    "{% generation %}a{% generation %}b{% endgeneration %}c{% endgeneration %}",
    "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}",
    "{% for m in messages %}{% generation %}{{ loop.index }}{% endgeneration %}{% endfor %}",
    "{%- if messages[0].role == 'system' %}{%- set system = messages[0].content | trim %}{%- set loop_messages = messages[1:] %}"
    "{%- else %}{%- set system = '' %}{%- set loop_messages = messages %}{%- endif %}\n{{- 'S:' ~ system ~ '\\n' }}\n"
    "{%- for message in loop_messages %}\n{%- if message.tool_calls is defined and message.tool_calls is not none %}\n"
    "{%- for call in message.tool_calls %}\n{{- call.function.name ~ '(' }}{%- for k, v in call.function.arguments|items %}"
    "{{- k ~ '=' ~ (v|tojson) }}{{- ', ' if not loop.last }}{%- endfor %}{{- ')\\n' }}\n{%- endfor %}\n{%- else %}\n"
    "{{- message.role ~ ': ' ~ message.content ~ '\\n' }}\n{%- endif %}\n{%- endfor %}",
    "{%- set ns = namespace(multi=true, last=messages|length - 1) %}{%- for message in messages[::-1] %}"
    "{%- set index = (messages|length - 1) - loop.index0 %}{%- if ns.multi and message.role == 'user' and message.content is string"
    " and not(message.content.startswith('<t>') and message.content.endswith('</t>')) %}{%- set ns.multi = false %}"
    "{%- set ns.last = index %}{%- endif %}{%- endfor %}{{ ns.last }}",
    "{% if tools %}# Tools\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}{{ tools | tojson(indent=2) }}{% endif %}",
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 1) and m.role == 'user' %}{{ raise_exception("
    "'roles must alternate') }}{% endif %}{{ m.role[0] }}{% endfor %}",
    "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools, ' + m.content) }}{% endif %}{% endfor %}",
    "{% set content = '<think>a</think>\\n\\nb' %}{{ content.split('</think>')[-1].lstrip('\\n') }}"
    "{{ content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') }}",
    "{%- macro show(p, level=0) -%}{%- for k, v in p | dictsort -%}{{ '  ' * level }}{{ k }}{%- if v is mapping %}:\n{{ show(v, level + 1) }}"
    "{%- else %}={{ v }}\n{%- endif -%}{%- endfor -%}{%- endmacro -%}{{ show(tools[0].function) }}",
    "{{ messages | selectattr('role', 'eq', 'assistant') | map(attribute='content') | list | tojson }}",
]

GROUPS = {"values": VALUES, "operators": OPERATORS, "methods": METHODS, "filters": FILTERS, "tests": TESTS,
          "statements": STATEMENTS, "white_space": WHITE_SPACE, "chats": CHATS}
