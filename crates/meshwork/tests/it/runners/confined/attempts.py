# Attempts to leave a sandbox. Each function returns if it succeeds, and raises if it is refused. The input names the
# targets. The result has a line for each attempt, with "ok" or its error.
import ctypes
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

at = json.load(sys.stdin)
outside, secret = at["outside"], at["outside"] + "/secret"
libc = ctypes.CDLL(None, use_errno=True)


def read(path):
    with open(path, "rb") as file:
        return file.read(4096)


def call(name, *args):
    done = getattr(libc, name)(*args)
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done


def system_call(number, *args):
    return call("syscall", ctypes.c_long(number), *args)


def in_child(work):
    # Leaves namespaces and mounts of the attempt behind with a process.
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or 1)
        finally:
            os._exit(1)
    code = os.WEXITSTATUS(os.waitpid(pid, 0)[1])
    if code != 0:
        raise OSError(code, os.strerror(abs(code)))


def read_by_path():
    read(secret)


def read_by_symlink():
    os.symlink(secret, "link")
    read("link")


def read_by_parents():
    read("../" * 20 + secret)


def read_by_hard_link():
    os.link(secret, "hard")
    read("hard")


def read_by_race():
    # A folder and a link to the outside take turns under one name.
    os.mkdir("inside")
    open("inside/secret", "w").close()
    os.symlink(outside, "leads-out")
    os.symlink("inside", "turn")
    stop = os.fork()
    if stop == 0:
        while True:
            for target in (outside, "inside"):
                os.symlink(target, "next")
                os.rename("next", "turn")
    try:
        # On a busy host the other process may not run for a while: tries count while the link turns.
        tries, turns, before, end = 0, 0, None, time.monotonic() + 10
        while (tries < 10000 or turns < 100) and time.monotonic() < end:
            tries += 1
            try:
                if read("turn/secret"):
                    return
            except OSError:
                pass
            now = os.readlink("turn")
            turns += now != before
            before = now
        raise OSError("never")
    finally:
        os.kill(stop, 9)
        os.waitpid(stop, 0)


def read_through_worker_root():
    read("/proc/%d/root%s" % (at["worker"], secret))


def read_shadow():
    read("/etc/shadow")


def list_outside():
    os.listdir(outside)


def stat_outside():
    os.stat(secret)


def write_outside():
    open(outside + "/new", "w").close()


def append_outside():
    open(secret, "a").close()


def truncate_outside():
    os.truncate(outside + "/filled", 1)


def make_folder_outside():
    os.mkdir(outside + "/made")
    os.rmdir(outside + "/made")


def rename_outside():
    os.rename(outside + "/filled", outside + "/moved")
    os.rename(outside + "/moved", outside + "/filled")


def remove_outside():
    os.unlink(outside + "/removed-" + at["round"])


def chmod_outside():
    os.chmod(secret, 0o600)


def chown_outside():
    os.chown(secret, os.getuid(), os.getgid())


def utime_outside():
    os.utime(secret)


def setxattr_outside():
    os.setxattr(secret, "user.escape", b"x")


def write_system():
    path = "/usr/local/meshwork-escape-%d" % os.getpid()
    open(path, "w").close()
    os.unlink(path)


def write_sysctl():
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))


def write_sysrq():
    os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY))


def environment_of_worker():
    if not read("/proc/%d/environ" % at["worker"]):
        raise OSError("empty")


def environment_of_victim():
    if not read("/proc/%d/environ" % at["victim"]):
        raise OSError("empty")


def environment_of_first():
    if b"=" not in read("/proc/1/environ"):
        raise OSError("empty")


def memory_of_victim():
    open("/proc/%d/mem" % at["victim"], "rb").close()


def descriptors_of_worker():
    os.readlink("/proc/%d/fd/0" % at["worker"])


def command_line_of_victim():
    if b"sleep" not in read("/proc/%d/cmdline" % at["victim"]):
        raise OSError("empty")


def signal_victim():
    os.kill(at["victim"], 0)


def signal_worker():
    os.kill(at["worker"], 0)


def signal_group_of_worker():
    os.killpg(os.getpgid(at["worker"]), 0)


def stop_launcher():
    launcher = os.getppid()
    os.kill(launcher, signal.SIGSTOP)
    try:
        for _ in range(100):
            if read("/proc/%d/stat" % launcher).rsplit(b")", 1)[1].split()[0] == b"T":
                return
            time.sleep(0.001)
        raise OSError("it runs on")
    finally:
        os.kill(launcher, signal.SIGCONT)


def trace_victim():
    # The end of this process ends it.
    call("ptrace", 0x4206, at["victim"], None, None)


def vm_read_victim():
    into, at_address = ctypes.create_string_buffer(8), int(read_address(), 16)
    local = struct.pack("PN", ctypes.addressof(into), 8)
    remote = struct.pack("PN", at_address, 8)
    call("process_vm_readv", at["victim"], local, 1, remote, 1, 0)


def read_address():
    return read("/proc/%d/maps" % at["victim"]).split(b"-", 1)[0]


def connect(family, kind, address):
    with socket.socket(family, kind) as end:
        end.connect(address)


def unix_socket():
    connect(socket.AF_UNIX, socket.SOCK_STREAM, outside + "/socket")


def unix_datagram_of_pair():
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ends[0].sendto(b"x", outside + "/datagrams")


def abstract_socket():
    connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + at["abstract"])


def netlink_socket():
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()


def raw_socket():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()


def packet_socket():
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()


def vsock_socket():
    socket.socket(40, socket.SOCK_STREAM).close()


def tcp():
    connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", at["tcp"]))


def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.sendto(b"x", ("127.0.0.1", at["udp"]))


def io_uring():
    parameters = ctypes.create_string_buffer(120)
    os.close(system_call(425, 4, parameters))


def bpf():
    # A map of one entry.
    attributes = struct.pack("IIIII", 2, 4, 4, 1, 0).ljust(128, b"\0")
    os.close(system_call(at["calls"]["bpf"], 0, attributes, 128))


def keyring():
    system_call(at["calls"]["keyctl"], 0, ctypes.c_int(-3), 1)


def perf():
    attributes = struct.pack("IIQ", 1, 128, 0).ljust(128, b"\0")
    os.close(system_call(at["calls"]["perf_event_open"], attributes, 0, -1, -1, 0))


def user_faults():
    os.close(system_call(at["calls"]["userfaultfd"], 0))


def file_handle():
    handle = ctypes.create_string_buffer(struct.pack("II", 128, 0), 136)
    mount = ctypes.c_int()
    call("name_to_handle_at", -100, b"/", handle, ctypes.byref(mount), 0)
    root = os.open("/", os.O_RDONLY)
    os.close(call("open_by_handle_at", root, handle, os.O_RDONLY))


def user_namespace():
    in_child(lambda: call("unshare", 0x10000000))


def user_namespace_by_clone3():
    arguments = ctypes.create_string_buffer(struct.pack("QQQQQQQQ", 0x10000000, 0, 0, 0, 17, 0, 0, 0))
    pid = system_call(435, arguments, 64)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def mount_namespace():
    in_child(lambda: call("unshare", 0x00020000))


def mount():
    def work():
        call("unshare", 0x00020000)
        call("mount", b"none", b"/", None, 0x44000, None)
        os.mkdir("mounted")
        call("mount", b"none", b"mounted", b"tmpfs", 0, None)

    in_child(work)


def change_root():
    in_child(lambda: os.chroot("."))


def make_device():
    os.mknod("device", 0o600 | 0o020000, os.makedev(1, 3))


def set_clock():
    time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME))


def set_host_name():
    in_child(lambda: socket.sethostname(socket.gethostname()))


def other_user():
    in_child(lambda: os.setuid(1))


def set_user_id():
    # A program of user 0 that waits for its input.
    with subprocess.Popen(["su"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        try:
            # The program is there before its user id is.
            end = time.monotonic() + 1
            while True:
                status = read("/proc/%d/status" % program.pid).decode()
                ids = [line.split()[2] for line in status.splitlines() if line.startswith("Uid:")]
                if ids == ["0"] and os.geteuid() != 0:
                    return
                if time.monotonic() > end:
                    raise OSError("it has the user id %s" % ids)
        finally:
            program.kill()


result = ""
for name in at["attempts"]:
    try:
        globals()[name]()
        answer = "ok"
    except (OSError, ValueError, IndexError, AttributeError) as error:
        answer = "%s: %s" % (type(error).__name__, error)
    result += "%s %s\n" % (name, answer)
