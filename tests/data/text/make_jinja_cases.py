#!/usr/bin/env python3
"""Writes jinja_cases.json: small templates with what Jinja2 3.1 renders in the environment that transformers sets up."""
import json
import os

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

VARIABLES = {
    "s": "Hello, Wörld",
    "padded": "  a b  ",
    "multi": "one\ntwo\n\nthree",
    "n": 7,
    "neg": -7,
    "f": 2.5,
    "whole": 3.0,
    "tiny": 1e-07,
    "huge": 1e22,
    "t": True,
    "no": False,
    "nil": None,
    "empty": "",
    "l": [3, 1, 2],
    "words": ["b", "A", "c", "a"],
    "mixed": [1, "two", 3.5, None, True, {"k": [1]}],
    "d": {"b": 1, "a": "x", "items": 5, "n": None},
    "people": [{"name": "Zoe", "age": 30, "tags": {"x": 1}}, {"name": "adam", "age": 25, "tags": {"x": 2}},
               {"name": "Bob", "age": 30, "tags": {"x": 0}}],
    "quote": "it's \"q\" \\ \t \u00a0 \u200b é 🦆",
    "tree": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 3, "c": [{"v": 4, "c": []}]}]}, {"v": 5, "c": []}],
    "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}],
}

TEMPLATES = r"""
{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}
{{ (1 + 2) ~ (3 + 4) }} {{ 'a' ~ 1 ~ none ~ true ~ 1.0 }}
{{ -n }} {{ +n }} {{ - -n }} {{ not t }} {{ not not t }} {{ -n|abs }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }}
{{ 0x1F }} {{ 0o17 }} {{ 0b101 }} {{ 1_000 }} {{ 1e3 }} {{ 1.5e-3 }} {{ 10 }} {{ 00 }}
{{ 'a' 'b' "c" }} {{ 'it\'s' }} {{ "\n\t\\\x41\u00e9\U0001F986\d" }}
{{ s[0] }} {{ s[-1] }} {{ s[1:4] }} {{ s[::-1] }} {{ s[8:] }} {{ s[:-3] }} {{ s[::3] }} {{ s[10:2:-2] }} {{ s[100] }}|{{ s[100:] }}|
{{ l[0] }} {{ l[-1] }} {{ l[1:] }} {{ l[::-1] }} {{ l[::-2] }} {{ l[5] }} {{ l[0:10:2] }} {{ (1,2,3)[1:] }}
{{ d.b }} {{ d['a'] }} {{ d.missing }} {{ d['missing'] is defined }} {{ d.items is callable }} {{ d['items'] }} {{ people.0.name }}
{{ 1 == 1.0 }} {{ 1 == true }} {{ '1' == 1 }} {{ [1,2] == [1,2] }} {{ (1,2) == [1,2] }} {{ {'a':1} == {'a':1.0} }} {{ none == false }}
{{ 1 < 2 < 3 }} {{ 1 < 2 > 3 }} {{ 'a' < 'b' }} {{ [1,2] < [1,3] }} {{ 3 >= 3 != 4 }} {{ 1 < 2.5 }}
{{ 'ell' in s }} {{ 3 in l }} {{ 'b' in d }} {{ 9 not in l }} {{ 'x' in undefined_name }} {{ not 3 in l }}
{{ t and 'x' }} {{ no and 'x' }} {{ no or 'y' }} {{ empty or nil or 'z' }} {{ t if no }}|{{ 'a' if t else 'b' }} {{ 'a' if no else 'b' if no else 'c' }}
{{ mixed }} {{ d }} {{ (1,) }} {{ () }} {{ [] }} {{ {} }} {{ {1: 'a', none: 2.0, 'x': (1, 'y')} }}
{{ quote }} {{ [quote] }} {{ ["it's", 'q"', 'both\'"'] }}
{{ 1.0 }} {{ f }} {{ tiny }} {{ huge }} {{ 1e16 }} {{ 123456789012345.6 }} {{ 0.1 + 0.2 }} {{ 1e15 }} {{ -0.0 }} {{ 1e-4 }} {{ 0.00001 }} {{ 5e-324 }}
{{ 7 / 7 }} {{ 10 / 4 }} {{ 3 * 'ab' }} {{ [1] * 3 }} {{ 'ab' * -1 }}| {{ [1] + [2] }} {{ (1,) + (2,) }} {{ true + true }}
{{ '%s and %d and %r and %.2f%%' % ('a', 3, 'b', 1.005) }} {{ '%s' % 5 }} {{ '%x' % 255 }}
{{ s|upper }} {{ s|lower }} {{ s|title }} {{ s|capitalize }} {{ s|length }} {{ s|reverse }} {{ s|first }} {{ s|last }} {{ 'hELLO wORLD'|title }}
{{ padded|trim }}|{{ padded.strip() }}|{{ padded.lstrip() }}|{{ padded.rstrip() }}|{{ 'xxhixx'.strip('x') }}|{{ 'abcba'|trim('ab') }}|
{{ s.split(', ') }} {{ padded.split() }} {{ padded.split(' ') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a  b c '.split(none, 1) }} {{ ' a  b c '.rsplit(none, 1) }}
{{ multi.splitlines() }} {{ multi.splitlines(true) }} {{ 'a\r\nb\rc'.splitlines() }}
{{ s.replace('l', 'L') }} {{ s.replace('l', 'L', 1) }} {{ 'abc'.replace('', '-') }} {{ s|replace('l', 'L') }} {{ 'aaa'|replace('a', 'b', 2) }}
{{ s.startswith('He') }} {{ s.endswith(('x', 'ld')) }} {{ s.find('l') }} {{ s.rfind('l') }} {{ s.find('zz') }} {{ s.count('l') }} {{ s.index('W') }} {{ 'ö'.find('ö') }}
{{ '-'.join(['a','b']) }} {{ l|join(', ') }} {{ people|join('/', attribute='name') }} {{ 'abc'|join('.') }} {{ d|join }}
{{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'abc'.partition('-') }} {{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.txt'.removesuffix('.txt') }}
{{ 'a'.center(5) }}|{{ 'ab'.center(5, '*') }}|{{ 'a'.ljust(3) }}|{{ 'a'.rjust(3, '.') }}|{{ '42'.zfill(5) }}|{{ '-42'.zfill(5) }}|{{ 'ab'|center(6) }}|
{{ 'abc'.isalpha() }} {{ '123'.isdigit() }} {{ 'a1'.isalnum() }} {{ ' '.isspace() }} {{ 'ab'.islower() }} {{ 'AB'.isupper() }} {{ ''.isalpha() }}
{{ '{} and {}'.format(1, 'b') }} {{ '{0}{1}{0}'.format('a', 'b') }} {{ '{x}'.format(x=3) }} {{ '{{}}'.format() }}
{{ 'straße'|upper }} {{ 'ÀÉ'|lower }} {{ 'aBc'.swapcase() if false else '' }}{{ 'ǆ'|capitalize }}
{{ d.get('b') }} {{ d.get('zz') }} {{ d.get('zz', 'dflt') }} {{ d.keys()|list }} {{ d.values()|list }} {{ d.items()|list }}
{{ d|length }} {{ d|list }} {{ d|items|list }} {{ d|dictsort }} {{ {'b':1,'A':2}|dictsort }} {{ {'b':1,'A':2}|dictsort(true) }} {{ {'b':1,'a':2}|dictsort(by='value', reverse=true) }}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %} {% for k in d %}{{ k }}{% endfor %} {% for c in 'aöb' %}{{ c }}.{% endfor %}
{{ l|sort }} {{ l|sort(reverse=true) }} {{ words|sort }} {{ words|sort(case_sensitive=true) }} {{ people|sort(attribute='age')|map(attribute='name')|list }} {{ people|sort(attribute='age', reverse=true)|map(attribute='name')|join(',') }}
{{ words|unique|list }} {{ ['a','A','b']|unique|list }} {{ [1,1.0,2]|unique|list }} {{ l|min }} {{ l|max }} {{ words|min }} {{ people|max(attribute='age') }} {{ []|max }}|
{{ l|sum }} {{ people|sum(attribute='age') }} {{ [[1],[2]]|sum(start=[]) }} {{ l|first }} {{ l|last }} {{ []|first }}|{{ l|reverse|list }}
{{ people|map(attribute='name')|list }} {{ words|map('upper')|list }} {{ people|map(attribute='tags.x')|list }} {{ people|map(attribute='zip', default='-')|list }} {{ ['a ', ' b']|map('trim')|join('|') }}
{{ l|select('odd')|list }} {{ l|reject('odd')|list }} {{ mixed|select|list }} {{ mixed|select('string')|list }} {{ l|select('gt', 1)|list }} {{ l|select('in', [1,2])|list }}
{{ people|selectattr('age', 'equalto', 30)|map(attribute='name')|list }} {{ people|rejectattr('age', 'eq', 30)|map(attribute='name')|list }} {{ people|selectattr('tags.x')|list|length }} {{ people|selectattr('zip', 'undefined')|list|length }}
{% for g, items in people|groupby('age') %}{{ g }}:{% for p in items %}{{ p.name }},{% endfor %}{% endfor %} {% for row in [1,2,3,4,5]|batch(2, 'x') %}{{ row }}{% endfor %}
{{ nil|default('d') }} {{ missing|default('d') }} {{ empty|default('d') }}|{{ empty|default('d', true) }} {{ missing|d }}| {{ missing.x|default('y') if false else 'ok' }}
{{ '42'|int }} {{ 'x'|int }} {{ 'x'|int(5) }} {{ 3.9|int }} {{ '3.9'|int }} {{ ' 7 '|int }} {{ 'ff'|int(0, 16) }} {{ '2.5'|float }} {{ 'x'|float }} {{ 3|float }} {{ true|int }}
{{ 2.567|round(2) }} {{ 2.5|round }} {{ 3.5|round }} {{ 7|round }} {{ 2.1|round(0, 'ceil') }} {{ 2.9|round(0, 'floor') }} {{ -3|abs }} {{ 1234.5|round(-2) }}
{{ multi|indent }}|{{ multi|indent(2, true) }}|{{ multi|indent(2, blank=true) }}|{{ multi|indent('> ') }}|{{ ''|indent(2, true) }}|{{ 'a\n'|indent(2) }}|
{{ 'the quick brown fox jumps'|truncate(12) }} {{ 'the quick brown fox jumps'|truncate(12, true) }} {{ 'short'|truncate(12) }} {{ 'the quick brown fox'|truncate(10, true, '', 0) }} {{ 'a b c'|wordcount }}
{{ '<a href="x">'|e }} {{ 'a b/ü'|urlencode }} {{ 5|string + '5' }} {{ mixed|string }} {{ '%s-%s'|format('a', 'b') }}
{{ d|tojson }} {{ mixed|tojson }} {{ quote|tojson }} {{ huge|tojson }} {{ whole|tojson }} {{ (1,2)|tojson }} {{ {1: 2, none: 3, true: 4}|tojson }} {{ '</a>&'|tojson }} {{ '\u2028\x7f\x01'|tojson }}
{{ d|tojson(indent=2) }} {{ [[], {}, [1, [2]]]|tojson(indent=1) }} {{ d|tojson(sort_keys=true) }} {{ d|tojson(separators=(',', ':')) }} {{ d|tojson(indent=4, separators=(',', ':')) }}
{{ n is number }} {{ t is number }} {{ n is integer }} {{ t is integer }} {{ f is float }} {{ t is boolean }} {{ s is string }} {{ nil is none }} {{ d is mapping }} {{ l is sequence }} {{ s is sequence }} {{ d is sequence }} {{ n is sequence }} {{ missing is sequence }}
{{ s is iterable }} {{ n is iterable }} {{ d is iterable }} {{ missing is iterable }} {{ range is callable }} {{ t is true }} {{ 1 is true }} {{ no is false }} {{ missing is undefined }} {{ missing is not defined }}
{{ 4 is even }} {{ 4 is odd }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 'a' is eq 'a' }} {{ 'a' is in ['a'] }} {{ 'a' is sameas 'b' }} {{ 'ab' is lower }} {{ 'AB' is upper }} {{ 5 is gt 3 }} {{ not s is string }} {{ 3 is not even }}
{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }}{{ loop.depth }} {% endfor %}
{% for x in l if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }} {% else %}none{% endfor %}{% for x in [] %}{% else %}empty{% endfor %}{% for x in missing %}{% else %}undef{% endfor %}
{% for x in range(5) %}{% if x == 1 %}{% continue %}{% endif %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %} {{ range(3)|list }} {{ range(1, 10, 3)|list }} {{ range(5, 0, -2)|list }}
{% for x in tree recursive %}{{ x.v }}:{{ loop.depth }}{{ loop.depth0 }}{% if x.c %}({{ loop(x.c) }}){% endif %}{% endfor %} {% for x in [[1,[2]],3] if x recursive %}{{ x if x is number else loop(x) }}{% else %}none{% endfor %}
{% for x in [1,1,2,2,1] %}{{ loop.changed(x) }}{% endfor %} {% for x in [1,2] %}{{ loop.changed(loop.first, 'a') }}{% endfor %}
{% macro v(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ v(1, 2, 3, b=4) }}{{ v(1, a=2) }}{{ v(*[1,2], **{'k': 5}) }}{% macro c() %}{{ caller is defined }}{% endmacro %}{{ c() }}{% call c() %}{% endcall %}
{{ '%5d|%-5s|%05.1f|%+d|%x|%X|%o|%e|%g|%c%c|%r|%.2s|%3s|% d|%#x|%*d' % (42, 'ab', 3.14159, 7, 255, 255, 8, 12345.678, 0.0001, 65, 'b', 'q', 'abc', 'z', 5, 255, 4, 7) }} {{ '%(a)s-%(b)03d' % {'a': 'x', 'b': 7} }} {{ '%s' % [1, 2] }} {{ '%d' % 3.99 }} {{ '%5.1f%%' % 12.345 }}
{{ '{:>8}|{:<8}|{:^9}|{:*^7}|{:08.2f}|{:+d}|{:,}|{:_}'.format('a', 'b', 'c', 'd', 3.14159, 5, 1234567, 1234567) }} {{ '{:x} {:#x} {:b} {:o} {:e} {:.3g} {:.1%} {:,.2f}'.format(255, 255, 5, 8, 12345.678, 0.00012345, 0.256, 1234567.891) }}
{{ '{!r} {!s:>4} {0[a]}'.format('q', 'z', **{}) if false else '{0!r} {1!s:>4} {2[a]} {2.b} {3[0]}'.format('q', 'z', {'a': 1, 'b': 2}, [9]) }} {{ '{:.3}|{:10}|{:10}|{:5}|{:.2}|{:=+6}'.format('abcdef', 'x', 7, true, 3.14159, -4) }}
{{ [1,2,3,4,5,6,7]|slice(3)|list }} {{ [1,2,3,4]|slice(3, 'x')|list }} {{ {'class': 'a b', 'id': none, 'n': 3, 'q': '<"'}|xmlattr }}|{{ {'a': 1}|xmlattr(false) }} {{ {'a b': 'c/d', 'e': 1}|urlencode }} {{ [('x', 'y z')]|urlencode }}
{{ 1|filesizeformat }} {{ 999|filesizeformat }} {{ 1500|filesizeformat }} {{ 1500|filesizeformat(true) }} {{ 123456789|filesizeformat }} {{ 1073741824|filesizeformat(true) }} {{ '2048'|filesizeformat(true) }}
{{ people|sort(attribute='age,name')|map(attribute='name')|join(',') }} {{ people|sort(attribute='nope')|length }} {{ people|groupby('zip', default='-')|map('first')|list }} {{ 0|map('upper')|list }} {{ none|select|list }}
{{ 'aBc'.swapcase() }} {{ 'a\tbc\td'.expandtabs(4) }} {{ 'abc'.isascii() }} {{ 'é'.isascii() }} {{ s.find('l', 4) }} {{ s.rfind('l', 0, 5) }} {{ s.count('l', 3) }} {{ s.startswith('ell', 1) }} {{ s.endswith('ell', 0, 4) }} {{ s.find('', 99) }} {{ 'aöb'.find('b', 1) }}
{{ 0.5 is odd }} {{ 3.0 is odd }} {{ true is odd }} {{ 6.0 is divisibleby(3) }} {{ true|round }} {{ '%s' % none }} {{ 9223372036854775807 }} {{ -9223372036854775807 - 1 }}
{% for a in [1,2] %}{% for b in [1,2] %}{{ loop.index }}{{ loop.depth }}{% endfor %}{{ loop.index }} {% endfor %}
{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% set x, y = 1, 2 %}{{ x }}{{ y }}{% set z = 1, 2 %}{{ z }}
{% set x = 1 %}{% for i in [1,2] %}{{ x }}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }} {% if true %}{% set x = 9 %}{% endif %}{{ x }}
{% set ns = namespace(a=1, b='x') %}{% for i in [1,2] %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c is defined }} {% set ns2 = namespace({'k': 5}) %}{{ ns2.k }}
{% set b %}captured {{ n }}{% endset %}[{{ b }}] {% set c | upper %}shout{% endset %}{{ c }} {% filter upper|replace('A', '4') %}banana{% endfilter %}
{% macro m(a, b='B', c=none) %}({{ a }},{{ b }},{{ c }}){% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(b=3, a=4) }}{{ m(1, c=[2]) }}{{ m() }}
{% macro fact(k) %}{{ 1 if k == 0 else k * (fact(k - 1)|int) }}{% endmacro %}{{ fact(5) }} {% macro outer() %}{{ late }}{% endmacro %}{% set late = 'L' %}{{ outer() }}
{% macro wrap() %}<{{ caller() }}>{% endmacro %}{% call wrap() %}in {{ n }}{% endcall %} {% macro each(xs) %}{% for x in xs %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(v) each(l) %}[{{ v }}]{% endcall %}
{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }} {% raw %}{{ not }} {% if %}{% endraw %}
{# comment #}x{#- tight -#}   y {# a #}
{% if no %}1{% elif n > 5 %}2{% else %}3{% endif %} {% if missing %}1{% elif nil %}2{% else %}3{% endif %} {% if l %}a{% endif %}{% if [] %}b{% endif %}{% if 0.0 %}c{% endif %}
{{ strftime_now('%Y-%m-%d %H:%M:%S %d %b %B %A') }} {{ dict(a=1, b=2) }} {{ dict([('x', 1)]) }} {{ dict({'q': 1}, r=2) }}
{{ messages[0].role }} {{ messages[-1]['content'] }} {{ messages|length }} {{ messages[1:]|map(attribute='content')|list }} {{ messages[0]['zip'] is defined }} {{ (messages|last).role }}
{{ [1,2,3]|map('string')|join('+') }} {{ (1 if t else 2) + 3 }}
{{ {'a': {'b': [1, {'c': 'deep'}]}}.a.b[1].c }} {{ ['a', 'b',] }} {{ {'a': 1,} }} {{ (1, 2,) }} {{ 'x' if 'a' in {'a': 1} and not no else 'y' }}
{{ mixed|list|length }} {{ 'abc'|list }} {{ s|list|length }} {{ 'äöü'|length }} {{ '🦆🦆'|length }} {{ '🦆x'[0] }} {{ '🦆x'[1:] }}
{{ undefined_thing }}|{{ d.nope }}|{{ 'a' ~ missing ~ 'b' }}|{{ missing == missing2 }}|{{ missing is none }}|{{ [missing] }}
{{ l.index(1) }} {{ l.count(1) }} {{ (1,2,1).count(1) }} {{ 'a b'.title() }} {{ 'x'.upper().lower() }}
{{ true }} {{ True }} {{ none }} {{ None }} {{ false and missing.x }} {{ true or missing.x }}
{{ 5 if 5 is odd else 6 }} {{ n is defined and n > 3 }} {{ missing is defined and missing.x }} {{ 'a' in ['a'] == true }} {{ 1 if s is string and s | length > 3 else 0 }}
{{ "a" if no else "" }}|{{ (s | upper)[0:2] }}|{{ s | upper | lower | first }}|{{ 'a,b' | replace(',', ';') ~ '!' }}|{{ 1 ~ 2 | string ~ 3 }}
"""

# Templates of several lines: white space around tags.
BLOCKS = [
    "a\n{% if true %}\nb\n{% endif %}\nc\n",
    "a\n  {% if true %}  \n  b\n  {%- endif %}\n\nc\n\n",
    "  {% if true %}x{% endif %}\n  {{ n }}\n  {#- c #}\n  z",
    "a  {%- if true -%}  b  {%- endif -%}  c",
    "a\n\n  {%+ if true %}b{% endif +%}\nc",
    "x {% set y = 1 %} {# c #}\n  {# d #}\n\ty\n",
    "{%- for i in [1, 2] %}\n  {{- i }}\n{%- endfor %}\n",
    "{% for i in [1, 2] -%}\n  {{ i }},\n{% endfor -%}\n end",
    "{{ 'a' -}}   b   {{- 'c' }}\n\n",
    "\r\na\r\n{% if true %}\r\nb\r{% endif %}",
    "{% raw -%}  x  {%- endraw %}  y\n {% raw %}\n z {% endraw %}\n w",
    "{{ {'a': {'b': 1}}['a']['b'] }}}}",
    "{% set x %}\n  line\n{% endset %}[{{ x }}]",
    "{{ 'a\nb' }}{{ \"tab\\tq\" }}",
    "\n\n{% macro m() %}\n  body\n{% endmacro %}\n{{ m() }}.",
    "{% if true %}\n\n\n{% endif %}\nend\n\n\n",
]

ERRORS = [
    "{{ missing.x }}", "{{ missing + 1 }}", "{{ 1 + 'a' }}", "{{ 'a' + 1 }}", "{{ [1] + 'a' }}", "{{ none + 1 }}", "{{ 1 / 0 }}",
    "{{ 1 // 0 }}", "{{ 1 % 0 }}", "{{ 1 < 'a' }}", "{{ 1 in 5 }}", "{{ 1 in 'a' }}", "{{ missing() }}", "{{ n() }}", "{{ d.nope() }}",
    "{{ raise_exception('boom') }}", "{{ l.append(1) }}", "{{ d.update({}) }}", "{{ s.__class__.x }}", "{% for x in 5 %}{% endfor %}",
    "{% for a, b in [1] %}{% endfor %}", "{{ 5|length }}", "{{ missing|tojson }}", "{{ l|map('nofilter')|list }}", "{{ l|nofilter }}",
    "{{ l is notest }}", "{% set x.y = 1 %}", "{% set d.y = 1 %}", "{{ l|items|list }}", "{{ l|map('upper')|length }}", "{{ [1, 'a']|sort }}",
    "{{ ''.join([1]) }}", "{{ 'a'.split('') }}", "{{ 'a'.index('b') }}", "{{ range(1000000) }}", "{{ {[1]: 2} }}", "{{ s[::0] }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "{{ '%d' % 'a' }}", "{{ '%s %s' % 'a' }}",
    "{% for x in [1] %}{{ loop([2]) }}{% endfor %}", "{% macro m() %}{% endmacro %}{% call m() %}{% endcall %}", "{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{{ '{:d}'.format('a') }}", "{{ '{:x}'.format(1.5) }}", "{{ '{} {}'.format(1) }}",
    "{{ '{0} {}'.format(1, 2) }}", "{{ '{x}'.format(y=1) }}", "{{ '{'.format(1) }}", "{{ '}'.format(1) }}", "{{ '{:5}'.format(none) }}", "{{ '%z' % 1 }}", "{{ '%(a)s' % 1 }}",
    "{{ '%(a)s' % {'b': 1} }}", "{{ '%c' % 'ab' }}", "{{ '%d' % none }}", "{{ '%5' % 1 }}", "{{ n[1:] }}", "{{ f[:2] }}", "{{ n|indent }}", "{{ missing|filesizeformat }}",
    "{{ {'a b': 1}|xmlattr }}", "{{ l.count(1, 2) }}", "{{ l|wordless }}", "{{ 'x'.nomethod() }}",
    # syntax
    "{{ }}", "{{ 1 + }}", "{% if %}{% endif %}", "{% if true %}", "{% endif %}", "{% for x %}{% endfor %}", "{{ 'a }}", "{{ (1 }}",
    "{{ 1 ) }}", "{% nosuchtag %}", "{# open", "{% raw %} x", "{{ a b }}", "{{ 1 2 }}", "{% set %}", "{% macro %}{% endmacro %}", "{{ a. }}",
    "{{ a[ }}", "{{ a['x' }}", "{{ @ }}", "{% break %}", "{{ x is }}", "{{ x | }}", "{% else %}", "{% for x in y %}{% endif %}",
]


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def strftime_now(fmt):
        import datetime
        return datetime.datetime(2026, 7, 4, 12, 30, 5).strftime(fmt)

    env.filters["tojson"] = tojson
    env.globals.update(raise_exception=raise_exception, strftime_now=strftime_now)
    return env


def main():
    env = environment()
    cases = []
    for template in TEMPLATES.strip("\n").split("\n") + BLOCKS:
        try:
            cases.append({"template": template, "text": env.from_string(template).render(VARIABLES)})
        except Exception as problem:
            print("not used:", template[:70], "->", type(problem).__name__, problem)
    for template in ERRORS:
        try:
            text = env.from_string(template).render(VARIABLES)
            print("renders:", template, "->", text)
        except Exception as problem:
            cases.append({"template": template, "error": f"{type(problem).__name__}: {problem}"})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jinja_cases.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"jinja2": jinja2.__version__, "variables": VARIABLES, "cases": cases}, file, ensure_ascii=False, indent=1)
        file.write("\n")


main()
