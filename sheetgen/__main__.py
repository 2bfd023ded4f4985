"""`python -m sheetgen` is `sheetgen`."""


def run() -> None:
    """Until the commands are loaded there is nothing to clear away, and Ctrl-C ends the process without a word."""
    import _signal as signal  # type: ignore[import-not-found]  # what it is made of: loads at once
    import atexit
    import gc

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()  # collecting takes a twelfth of a short command's time, and finds next to nothing
    atexit.register(gc.freeze)  # nor does the last collection, which Python makes all the same: a sixth of the time
    from sheetgen.cli import main
    from sheetgen.cli.output import program

    main(prog_name=program())


if __name__ == "__main__":
    run()
