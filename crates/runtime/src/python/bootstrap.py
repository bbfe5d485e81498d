# Runs ./script.py as __main__ and leaves in a file how it ended. Given to the interpreter with -c; its
# arguments: the descriptor of the lifeline (-1 where a launcher watches the worker), the file for the outcome, the largest result in bytes, the pipe for
# progress, the socket for requests.


def _meshwork():
    import _collections_abc
    import _thread
    import builtins
    import os
    import sys

    lifeline, outcome, most = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    pipe, unsent, socket = sys.argv[4], [], sys.argv[5]
    group = leader = os.getpid()

    # What the end needs is kept from the start: the script may use up all descriptors, lower its limits, change its user,
    # its search path, or the functions of modules.
    too_large = 27
    open, importer, path, finders = builtins.open, builtins.__import__, sys.path[:], sys.meta_path[:]
    getpid, fstat, close, open_file, write_at, cut = os.getpid, os.fstat, os.close, os.open, os.pwrite, os.ftruncate

    def prepared():
        # The file has its greatest size at first, without using space: a limit of file sizes lets none grow. Where the host
        # has such a limit, it grows as far as that allows.
        file = open_file(outcome, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            cut(file, most + 64)
        except OSError:
            pass
        return file, os.dup(file), fstat(file).st_ino

    if os.geteuid() == 0:
        # After a change of the user or of the root, the library may not be readable.
        for name in "json", "linecache", "mmap", "traceback":
            importer(name)

    kept, spare, inode = prepared()

    def is_kept(file):
        try:
            return fstat(file).st_ino == inode
        except OSError:
            return False

    def standard(name):
        # A module of the standard library.
        if name in sys.modules:
            return sys.modules[name]
        changed = sys.path, sys.meta_path, builtins.open
        sys.path, sys.meta_path, builtins.open = path[:], finders[:], open
        try:
            return importer(name)
        finally:
            sys.path, sys.meta_path, builtins.open = changed

    def watch():
        # Nobody ever writes: the end of it means that the worker is gone, and then so are we.
        try:
            while os.read(lifeline, 1):
                pass
        except OSError:
            return
        try:
            child = os.fork()
            if child == 0:
                try:
                    clean_up()
                finally:
                    os._exit(0)
            # Out of the group before that is killed, to remove what is left of it.
            os.setpgid(child, child)
        finally:
            os.killpg(group, 9)

    def clean_up():
        import time

        for _ in range(500):
            try:
                os.killpg(group, 0)
            except OSError:
                break
            time.sleep(0.01)
        root = os.path.dirname(outcome)
        for path, folders, files in os.walk(root, topdown=False):
            for name in (os.path.join(path, name) for name in folders + files):
                if os.path.isdir(name) and not os.path.islink(name):
                    os.rmdir(name)
                else:
                    os.unlink(name)
        os.rmdir(root)

    def leave(kind, *parts):
        # Not by a copy that the script has forked. The first line comes last: without it the file counts as empty.
        if getpid() != group:
            return
        make_room()
        head, body = kind + b"\n", b"".join(parts)
        file = kept if is_kept(kept) else prepared()[0]
        try:
            store(lambda at, data: write_whole(file, at, data), file, head, body)
        except OSError as error:
            if error.errno != too_large:
                raise
            # A limit of file sizes does not hold for memory that is mapped to the file.
            with standard("mmap").mmap(file, 0) as memory:
                store(lambda at, data: memory.__setitem__(slice(at, at + len(data)), data), file, head, body)

    def store(write, file, head, body):
        write(len(head), body)
        cut(file, len(head) + len(body))
        write(0, head)

    def write_whole(file, at, data):
        data = memoryview(data)
        while data:
            written = write_at(file, data, at)
            at, data = at + written, data[written:]

    def make_room():
        # A descriptor for what is read now.
        if is_kept(spare):
            close(spare)

    def fail(kind, message, traceback=""):
        message, traceback = (text.encode("utf-8", "backslashreplace") for text in (message, traceback))
        leave(kind, b"%d\n" % len(message), message, traceback[:most - len(message)])

    def fail_with(kind, error):
        try:
            message, shown = described(error)
        except BaseException:
            message, shown = plain(error), ""
        fail(kind, message, shown)

    def plain(error):
        name = type(error).__name__
        try:
            return ("%s: %s" % (name, error)).rstrip(": ")
        except BaseException:
            return name

    def described(error):
        make_room()
        linecache, traceback = standard("linecache"), standard("traceback")

        # The lines of the script, wherever it has changed to by now; and no frames of this file.
        lines = source.decode("utf-8", "replace").splitlines(True)
        linecache.cache["script.py"] = (len(source), None, lines, "script.py")
        shown = traceback.TracebackException(type(error), error, error.__traceback__.tb_next)
        if isinstance(error, SyntaxError):
            message = plain(error)
        else:
            message = "".join(shown.format_exception_only()).strip()
        return message, "".join(shown.format())

    class Permanent(Exception):
        """No other run would help: the job ends in error, as a dead letter."""

    class Retry(Exception):
        """The job runs again, if a retry is left, after so many seconds, or after its backoff."""

        def __init__(self, message="", *, after=None):
            super().__init__(message or "retry")
            self.after = None if after is None else pause(after)

    class Snooze(Exception):
        """The job runs again after so many seconds, and no attempt is used."""

        def __init__(self, after, message=""):
            super().__init__(message or "snoozed")
            self.after = pause(after)

    class Discard(Exception):
        """The job ends in error at once, and is no dead letter."""

    verdicts = (Permanent, Retry, Snooze, Discard)

    def pause(after):
        seconds = float(after.total_seconds() if hasattr(after, "total_seconds") else after)
        if not 0 <= seconds <= 604800:
            raise ValueError("a pause is a number of seconds from 0 to 604800, or a timedelta")
        return seconds

    def give(verdict):
        kind = next(known.__name__.lower() for known in verdicts if isinstance(verdict, known))
        after = getattr(verdict, "after", None)
        head = kind if after is None else "%s %r" % (kind, after)
        fail(head.encode("ascii"), str(verdict) or kind)

    def hand_over(result):
        make_room()
        if result is None:
            return leave(b"nothing")
        if isinstance(result, str):
            data = result.encode("utf-8", "surrogateescape")
        elif isinstance(result, (bytes, bytearray, memoryview)):
            data = bytes(result)
        else:
            text = standard("json").dumps(result, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            data = text.encode("utf-8")
        if len(data) > most:
            fail(b"permanent", "the result takes %d bytes, the limit is %d" % (len(data), most))
        else:
            leave(b"result", data)

    def progress(fraction, message=None):
        fraction = float(fraction)
        if fraction != fraction:
            raise ValueError("progress is a number from 0 to 1")
        line = "%r" % min(max(fraction, 0.0), 1.0)
        if message is not None:
            line += " " + " ".join(str(message).split())
        # Shorter than what a pipe takes as a whole.
        unsent[:] = [line.encode("utf-8", "replace")[:1024] + b"\n"]
        send()

    def send(wait=0):
        # A full pipe is tried again later, and given a second at the end; the latest word is what counts.
        try:
            end = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            try:
                if wait:
                    standard("select").select([], [end], [], wait)
                os.write(end, unsent[0])
            finally:
                os.close(end)
            unsent.clear()
        except (OSError, ValueError):
            pass

    # One request at a time, so that each run sends them in the same order; whether one is under way.
    asking, busy = _thread.RLock(), [False]
    # The longest line that the worker takes, and the longest path of a socket.
    most_request, most_path = 32 * 1024 * 1024, 100

    def add_child(script, *, type=None, input=None, priority=None, delay=None, retries=None, timeout=None, key=None,
                  group=None, sandbox=None, env=None):
        """Adds a child of this job and returns its id."""
        in_leader("add_child")
        if not isinstance(script, str):
            raise TypeError("add_child() takes a script as text")
        base64, json = standard("base64"), standard("json")
        options = dict(type=type, priority=priority, delay=delay, retries=retries, timeout=timeout, key=key,
                       group=group, sandbox=sandbox, env=env)
        options = {name: value for name, value in options.items() if value is not None}
        if input is not None:
            if isinstance(input, str):
                input = input.encode("utf-8", "surrogateescape")
            elif not isinstance(input, (bytes, bytearray, memoryview)):
                input = json.dumps(input, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")
            input = base64.b64encode(input).decode("ascii")
        reply = request("add_child", dict(script=script, input=input, options=options), json)
        if "id" not in reply:
            raise RuntimeError(reply.get("error", "add_child() was not answered"))
        return reply["id"]

    class ActionError(RuntimeError):
        """A service answered a call with an error, no answer came in time, or the call was refused."""

        def __init__(self, message="", kind="", code=None, details=None):
            super().__init__(message)
            self.kind, self.code, self.details = kind, code, details

    class ActionTimeout(ActionError, TimeoutError):
        """No answer came in time."""

    def call_action(type, data=None, *, timeout=None):
        """Calls an action of a service and returns the data of its reply."""
        if timeout is not None:
            timeout = float(timeout.total_seconds() if hasattr(timeout, "total_seconds") else timeout)
        return action("call_action", "call", type, data, timeout=timeout)

    def send_action(type, data=None, *, callback=None, remember=None):
        """Sends an action without waiting, and returns its id; with a callback, the correlation id of both."""
        if callback is not None and not isinstance(callback, str):
            raise TypeError("send_action() takes a callback as text: the name of its event")
        if callback is None and remember is not None:
            raise TypeError("send_action() takes `remember` only with a callback")
        return action("send_action", "send", type, data, callback=callback, remember=remember)

    def notify_action(event, data=None):
        """Publishes a notification of an event, and returns the number of its receivers."""
        return action("notify_action", "notify", event, data)

    def action(name, delivery, type, data, **more):
        in_leader(name)
        if not isinstance(type, str):
            kind = "an event" if delivery == "notify" else "the type of an action"
            raise TypeError("%s() takes %s as text" % (name, kind))
        data = {} if data is None else data
        if not isinstance(data, dict):
            raise TypeError("%s() takes data as a dict, not as %s" % (name, data.__class__.__name__))
        json = standard("json")
        reply = request(name, dict(action=dict(more, delivery=delivery, type=type, data=data)), json)
        if "reply" in reply:
            return reply["reply"]
        failed = reply.get("failed") or dict(kind="Refused")
        error = ActionTimeout if failed["kind"] == "Timeout" else ActionError
        message = reply.get("error", "%s() was not answered" % name)
        raise error(message, failed["kind"], failed.get("code"), failed.get("details"))

    def in_leader(name):
        if os.getpid() != leader:
            raise RuntimeError("%s() works only in the process of the job itself, not in one that it has forked" % name)

    def request(name, given, json):
        line = json.dumps(given, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"
        if len(line) > most_request:
            raise ValueError("the request of %s() has %d bytes, the limit is %d" % (name, len(line), most_request))
        with asking:
            if busy[0]:
                raise RuntimeError(
                    "%s() cannot be called now: a call is under way in this thread, which a handler of a signal has "
                    "interrupted" % name
                )
            busy[0] = True
            try:
                return json.loads(ask(line))
            except (OSError, ValueError) as error:
                raise RuntimeError("%s() is not there any more: the run has ended (%s)" % (name, error)) from None
            finally:
                busy[0] = False

    def ask(line):
        _socket = standard("_socket")
        if calls is not None:
            end, other = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
            to = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, calls)
            try:
                passed = other.fileno().to_bytes(4, sys.byteorder)
                to.sendmsg([b"c"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, passed)])
            finally:
                to.detach()
                # Only the worker keeps this end, so that its death is noticed.
                other.close()
            try:
                return exchange(end, line)
            finally:
                end.close()
        end, folder = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM), None
        try:
            path = socket
            if len(os.fsencode(path)) > most_path:
                folder = os.open(os.path.dirname(path), os.O_RDONLY)
                path = "/proc/self/fd/%d/%s" % (folder, os.path.basename(path))
            end.connect(path)
            return exchange(end, line)
        finally:
            end.close()
            if folder is not None:
                os.close(folder)

    def exchange(end, line):
        end.sendall(line)
        read = []
        while not read or not read[-1].endswith(b"\n"):
            read.append(end.recv(65536))
            if not read[-1]:
                raise OSError("its socket is closed")
        return b"".join(read)

    def inherited():
        # The socket for requests where no path can be connected to.
        try:
            number, inode = map(int, os.environ.get("MESHWORK_CALLS_SOCKET", "").split(":"))
            return number if os.fstat(number).st_ino == inode else None
        except (OSError, ValueError):
            return None

    calls = inherited()

    class MissingInput(KeyError):
        """There is no such result."""

        def __str__(self):
            return self.args[0]

    # Scripts and their errors show the class that scripts catch.
    MissingInput.__name__ = MissingInput.__qualname__ = "KeyError"
    MissingInput.__module__ = "builtins"

    class Inputs(_collections_abc.Mapping):
        """Results of the jobs that this one depends on, by the name that each was given, or by id."""

        def __getitem__(self, name):
            entry = self._find(name)
            if "error" in entry:
                raise MissingInput(entry["error"])
            if "base64" in entry:
                return standard("base64").b64decode(entry["base64"])
            return entry["result"]

        def errors(self, name):
            """Errors of a failed job: of a foreach by the index of the item, else with the index 0."""
            return {int(index): error for index, error in self._find(name).get("errors", {}).items()}

        def _find(self, name):
            entries = self._read()
            entry = entries.get(name) or next((one for one in entries.values() if one["id"] == name), None)
            if entry is None:
                known = ", ".join(list(entries)[:10]) or "none"
                raise MissingInput("there is no input %r: this job has %s" % (name, known))
            return entry

        def __iter__(self):
            return (name for name, entry in self._read().items() if "error" not in entry)

        def __len__(self):
            return sum(1 for _ in self)

        def __repr__(self):
            return "<inputs: %s>" % (", ".join(self._read()) or "none")

        def _read(self):
            if self._entries is None:
                json = standard("json")
                self._entries = {}
                if results is not None:
                    with open(results, "rb") as file:
                        self._entries = json.loads(file.read(), parse_float=number)
            return self._entries

        _entries = None

    def number(text):
        # One that is too large for a float keeps its digits as a text.
        value = float(text)
        return value if value - value == 0 else text

    results = os.environ.get("MESHWORK_INPUTS")

    if lifeline >= 0:
        os.set_inheritable(lifeline, False)
        _thread.start_new_thread(watch, ())
        if sys.version_info >= (3, 12):
            import warnings

            # That thread neither holds a lock nor touches Python's state while it waits: to fork is safe.
            about = r"This process \(pid=\d+\) is multi-threaded"
            warnings.filterwarnings("ignore", about, DeprecationWarning)

    # What was printed is there also when the script is killed.
    sys.stdout.reconfigure(line_buffering=True)
    sys.argv[:] = ["script.py"]
    main = type(sys)("__main__")
    names = ("CALLER_ID", "CONTEXT_ID", "JOB_ID")
    main.__dict__.update(((name, os.environ[name]) for name in names), __file__="script.py", __builtins__=builtins)
    main.progress = progress
    main.add_child = main.submit = add_child
    main.call_action, main.send_action, main.notify_action = call_action, send_action, notify_action
    main.ActionError = ActionError
    main.inputs = Inputs()
    for verdict in verdicts:
        verdict.__qualname__ = verdict.__name__
        setattr(main, verdict.__name__, verdict)
    for named in (add_child, call_action, send_action, notify_action, ActionError, ActionTimeout):
        named.__qualname__ = named.__name__
    sys.modules["__main__"] = main
    with open("script.py", "rb") as file:
        source = file.read()
    try:
        code = compile(source, "script.py", "exec", dont_inherit=True)
    except BaseException as error:
        fail_with(b"permanent", error)
        sys.exit(1)
    try:
        exec(code, main.__dict__)
    except SystemExit as end:
        if isinstance(end.code, str):
            fail(b"script", "exit status 1: " + end.code)
        if end.code:
            raise
    except verdicts as verdict:
        give(verdict)
        sys.exit(1)
    except BaseException as error:
        fail_with(b"script", error)
        sys.exit(1)
    if unsent:
        send(1)
    try:
        hand_over(main.__dict__.get("result"))
    except Exception as error:
        fail(b"script", "the result cannot be handed over: %s: %s" % (type(error).__name__, error))
        sys.exit(1)


_meshwork()
