"""Names come from users: in figures and on terminals they are text, whatever they look like."""

from __future__ import annotations

import pytest

from harmonium.cli.show import Show, cell
from harmonium.plots.style import chart, legend, new_figure

HOSTILE = r"$\frac{$"


def test_a_dollar_sign_starts_no_formula() -> None:
    figure = new_figure()
    axes = chart(figure, 1, 1, 1, title=HOSTILE, x=HOSTILE, y=HOSTILE)
    axes.plot([0, 1], label=HOSTILE)
    legend(axes)
    figure.canvas.draw()
    axes.set_title(HOSTILE, parse_math=True)  # the control: matplotlib fails on it
    with pytest.raises(ValueError, match="frac"):
        figure.canvas.draw()


def test_brackets_and_control_characters_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    Show().line("[bold]x[/bold] \x1b[2J :smile:")
    assert capsys.readouterr().out == "[bold]x[/bold] \\x1b[2J :smile:\n"
    assert cell("[red]\u202eabc").plain == "[red]\\u202eabc"
