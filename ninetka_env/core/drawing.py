"""What all pictures need: pygame, which is an extra, and a window on the screen."""

from __future__ import annotations

import functools
import os
import time
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt


def load_pygame() -> ModuleType:
    """Import pygame, which is an extra.

    Raises:
        ImportError: saying what to install.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
        import pygame.freetype
    except ImportError as error:
        raise ImportError("pictures need pygame: pip install 'ninetka-env[render]'") from error
    pygame.freetype.init()
    return pygame


@functools.lru_cache(maxsize=32)
def load_font(size: float) -> Any:
    """Return pygame's own font; `ImportError` as in `load_pygame`."""
    pygame = load_pygame()
    pygame.register_quit(load_font.cache_clear)  # fonts die with pygame.quit(), which other programs' windows call
    return pygame.freetype.Font(None, size)


class Window:
    """A window on the screen that shows one picture after another."""

    def __init__(self, title: str, fps: float = 2.0) -> None:
        """Prepare a window; it opens when the first picture is shown.

        Args:
            title: what the window is called.
            fps: how many pictures to show in a second at most; `show` waits for the one before to be seen.
        """
        self._pause, self._title = 1 / fps, title
        self._surface: Any = None
        self._next_at = 0.0
        self.is_closed = False
        """Whether the window was closed, by its user or by `close`; it then stays closed and shows nothing."""

    def show(self, pixels: npt.NDArray[np.uint8]) -> None:
        """Show a picture, (H, W, 3) uint8, and let the system handle the window's events.

        Raises:
            ImportError: if pygame is missing, naming the extra to install.
            RuntimeError: if there is no screen.
        """
        while not self.is_closed and (wait := self._next_at - time.monotonic()) > 0:
            time.sleep(min(wait, 0.02))
            self.pump()
        if self.is_closed:
            return
        picture = load_pygame().surfarray.make_surface(pixels.swapaxes(0, 1))
        if self._surface is None:
            self._surface = self._open(picture.get_size())
        self._surface.blit(picture, (0, 0))
        load_pygame().display.flip()
        self._next_at = time.monotonic() + self._pause
        self.pump()

    def pump(self) -> None:
        """Handle the window's events, so that it stays alive; notices when its user closes it."""
        if self._surface is not None:
            pygame = load_pygame()
            if not pygame.display.get_init() or any(event.type == pygame.QUIT for event in pygame.event.get()):
                self.close()

    def close(self) -> None:
        """Close the window for good."""
        if self._surface is not None:
            load_pygame().display.quit()
        self._surface, self.is_closed = None, True

    def _open(self, size: tuple[int, int]) -> Any:
        pygame = load_pygame()
        try:
            pygame.display.init()
            surface = pygame.display.set_mode(size)
        except pygame.error as error:
            raise RuntimeError(f"no window can be opened ({error}); render_mode='rgb_array' needs none") from error
        pygame.display.set_caption(self._title)
        return surface
