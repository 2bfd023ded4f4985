"""The mail with a sheet or plan: its words, the draft (.eml), and sending by SMTP.

The standard library's `email` and `smtplib` suffice (STARTTLS, AUTH, MIME, no line break in a command). aiosmtplib is
for sending many messages at once; yagmail, envelopes and the like guess the source of credentials, and whether an
unencrypted connection will do.
"""

from sheetgen.errors import SheetgenError


class MailError(SheetgenError):
    """A message that cannot be made or sent: the address or server, the problem, and what to do."""
