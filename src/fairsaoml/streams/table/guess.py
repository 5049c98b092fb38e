"""What a table's columns may be, by their names and first rows: a guess for who has not said."""

import re
import shlex
from collections.abc import Collection

from fairsaoml.streams.table.columns import factor, is_flat
from fairsaoml.streams.table.groups import MAX_LEVELS
from fairsaoml.streams.table.reading import Source, read_table
from fairsaoml.streams.table.roles import known_words

FIRST_ROWS = 10_000


def guessed_options(source: Source, wanted: Collection[str]) -> list[str]:
    """Options for the roles that are wanted, label or sensitive, as words of a command.

    The label: a column of two values that is named like an outcome, else the last one of two. The
    sensitive columns: those of a few values that may be protected by their names.

    >>> import pyarrow as pa
    >>> from fairsaoml.streams.table.reading import open_source
    >>> table = pa.table({"job": ["a", "b"], "sex": ["f", "m"], "age": [30, 40], "hired": [0, 1]})
    >>> guessed_options(open_source(table), ["label", "sensitive"])
    ['--label', 'hired', '--sensitive', 'sex,age']
    """
    head = read_table(source.first(FIRST_ROWS))
    flat = [name for name in head.column_names if is_flat(head.schema.field(name).type)]
    values = {name: len(factor(head[name]).folded().values) for name in flat}
    options = []
    protected = [name for name in values if may_be_protected(name)]
    if "label" in wanted:
        pairs = [name for name, count in values.items() if count == 2 and name not in protected]
        named = [name for name in pairs if _has_word(name, "outcome")]
        if likely := (named or pairs)[-1:]:
            options += ["--label", shlex.quote(likely[0])]
    few = [name for name in protected if 2 <= values[name] <= MAX_LEVELS]
    if "sensitive" in wanted and few:
        options += ["--sensitive", shlex.quote(",".join(few))]
    return options


def may_be_protected(name: str) -> bool:
    """Whether a column's name has a word of what the law may protect.

    >>> may_be_protected("ageAtEntry"), may_be_protected("SEX_code"), may_be_protected("mileage")
    (True, True, False)
    """
    return _has_word(name, "protected")


def _has_word(name: str, kind: str) -> bool:
    pattern = "|".join(known_words()["columns"][kind])
    return any(re.fullmatch(pattern, word) for word in words(name))


def words(name: str) -> list[str]:
    """The words of a column's name.

    >>> words("ageAtEntry"), words("SEX_code")
    (['age', 'at', 'entry'], ['sex', 'code'])
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return re.findall(r"[a-z]+", apart.lower())
