"""Options that commands of several files of tests are given."""

LOAD = ("--model", "70b", "--context", "16k", "--concurrent-requests", "32")
REPLICA = ("--model", "70b", "--gpu", "h100", "--tensor-parallel-size", "4", "--context", "16k")
POINT = (*REPLICA, "--concurrent-requests", "32")
