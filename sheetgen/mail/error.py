"""What is wrong with a message, or with sending it."""

from __future__ import annotations

from sheetgen.errors import SheetgenError


class MailError(SheetgenError):
    """A message that cannot be made or sent: the address or the server, what is wrong, what to do."""
