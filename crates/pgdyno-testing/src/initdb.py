"""In place of initdb in tests: the first call with the same options makes a template, and each cluster is a copy of it that has its own system
identifier and password. The real initdb is beside it, and does whatever this cannot."""

import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
OWN = os.path.join(HERE, "initdb-own")
# Beside the directory that all versions are in; everybody may make a directory there.
TEMPLATES = os.path.join(HERE, "../../../clusters")
# Those of a call, each with a word behind it.
PLACES = ["--pgdata", "--pwfile", "--waldir"]
# In the header of a segment's first page.
WAL_IDENTIFIER_AT = 24


def run(command, given=""):
    subprocess.run(command, input=given, text=True, check=True, capture_output=True)


def checksums(data):
    """(number of bytes, their CRC-32C) at each fourth byte."""
    crc = 0xFFFFFFFF
    for at, byte in enumerate(data, 1):
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        if at % 4 == 0:
            yield at, (crc ^ 0xFFFFFFFF).to_bytes(4, "little")


def template(options):
    """A cluster that was made with these options."""
    version = os.path.basename(os.path.dirname(HERE))
    name = "_".join([version, str(os.getuid()), *options]).replace("/", ":")
    made = os.path.join(TEMPLATES, name)
    if not os.path.isdir(made):
        new = f"{made}.{os.getpid()}"
        run([OWN, "--pgdata", new, *options])
        try:
            os.rename(new, made)
        except OSError:
            # Another call was first.
            shutil.rmtree(new)
    return made


def identify(data):
    """Gives a cluster an identifier of its own, in its control file and its WAL."""
    # As a timestamp in its upper half is, it is positive.
    identifier = (int.from_bytes(os.urandom(8), "little") >> 1).to_bytes(8, "little")
    with open(os.path.join(data, "global/pg_control"), "r+b") as file:
        control = file.read()
        # Where the checksum is depends on the version: it is that of all before it.
        end = next(end for end, crc in checksums(control) if crc == control[end : end + 4])
        control = identifier + control[8:end]
        *_, (_, crc) = checksums(control)
        file.seek(0)
        file.write(control + crc)
    wal = os.path.join(data, "pg_wal")
    for name in os.listdir(wal):
        if len(name) == 24:
            with open(os.path.join(wal, name), "r+b") as file:
                file.seek(WAL_IDENTIFIER_AT)
                file.write(identifier)


def copy(places, options):
    data = places["--pgdata"]
    run(["cp", "-a", "--reflink=auto", template(options) + "/.", data])
    identify(data)
    if "--pwfile" in places:
        with open(places["--pwfile"]) as file:
            statement = "ALTER ROLE postgres PASSWORD '{}'\n".format(file.read().strip())
        server = [os.path.join(HERE, "postgres"), "--single", "-D", data, "-c", "fsync=off", "template1"]
        run(server, statement)
    if "--waldir" in places:
        wal = os.path.join(data, "pg_wal")
        run(["cp", "-a", wal + "/.", places["--waldir"]])
        shutil.rmtree(wal)
        os.symlink(places["--waldir"], wal)


def empty(data):
    for name in os.listdir(data) if os.path.isdir(data) else []:
        path = os.path.join(data, name)
        shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)


def main():
    places, options, words = {}, [], iter(sys.argv[1:])
    for word in words:
        if word in PLACES:
            places[word] = next(words, "")
        else:
            options.append(word)
    data = places.get("--pgdata")
    if data and not (os.path.isdir(data) and os.listdir(data)):
        try:
            return copy(places, options)
        except (OSError, StopIteration, subprocess.CalledProcessError):
            empty(data)
    os.execv(OWN, [OWN, *sys.argv[1:]])


main()
