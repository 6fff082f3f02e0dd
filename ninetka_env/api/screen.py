"""The render modes that the environments share; what they draw is in `ninetka_env.games.ninetka.render`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ninetka_env.games.ninetka.game import Game, check_choice

if TYPE_CHECKING:
    from ninetka_env.games.ninetka.render import Window

RENDER_MODES = ("human", "rgb_array", "ansi")


class Screen:
    """Draws games in one render mode, and owns the window that `"human"` needs."""

    def __init__(self, render_mode: str | None) -> None:
        """Check the mode: None, `"human"`, `"rgb_array"` or `"ansi"`; `ValueError` for any other."""
        check_choice("render_mode", render_mode, (None, *RENDER_MODES))
        self.mode = render_mode
        self._window: Window | None = None

    def draw(self, game: Game) -> str | npt.NDArray[np.uint8] | None:
        """Return the board as text (`ansi`) or as an (H, W, 3) uint8 picture (`rgb_array`), or show it (`human`).

        Raises:
            ValueError: if the environment was made without a render mode.
        """
        if self.mode is None:
            raise ValueError(f"render_mode=None: nothing to render; make the environment with one of {RENDER_MODES}")
        from ninetka_env import render  # drawing code is loaded when it is used

        if self.mode == "ansi":
            return render.render_ansi(game)
        if self.mode == "rgb_array":
            return render.render_rgb(game)
        if self._window is None:
            self._window = render.Window()
        self._window.show(game)
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles leave the window behind."""
        return self.__dict__ | {"_window": None}
