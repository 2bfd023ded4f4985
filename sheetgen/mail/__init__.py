"""The message that carries a sheet to people: its words, the draft (.eml), and the way over SMTP.

The standard library's `email` and `smtplib` make and send it. They do all that is needed (STARTTLS, AUTH, MIME, no
line break in a command); aiosmtplib is for programs that send many at once, and yagmail, envelopes and the like guess
what this must not guess: where credentials come from, and whether an unencrypted connection will do.
"""

from sheetgen.errors import SheetgenError


class MailError(SheetgenError):
    """A message that cannot be made or sent: the address or the server, what is wrong, what to do."""
