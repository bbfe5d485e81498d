#!/bin/bash
# Attempts to leave a sandbox, as commands of a shell. The arguments are the targets, the output names each attempt and
# whether it succeeded.
outside=$1 victim=$2 worker=$3 tcp=$4 udp=$5
shift 5

read_by_path() { cat "$outside/secret"; }
read_by_symlink() { ln -s "$outside/secret" link && cat link; }
read_by_parents() { cat "../../../../../../../..$outside/secret"; }
read_by_hard_link() { ln "$outside/secret" hard && cat hard; }
read_through_worker_root() { cat "/proc/$worker/root$outside/secret"; }
read_shadow() { cat /etc/shadow; }
list_outside() { ls "$outside"; }
stat_outside() { stat "$outside/secret"; }
write_outside() { echo x >"$outside/written"; }
append_outside() { : >>"$outside/secret"; }
make_folder_outside() { mkdir "$outside/shell" && rmdir "$outside/shell"; }
chmod_outside() { chmod 600 "$outside/secret"; }
utime_outside() { touch -d @1 "$outside/secret"; }
write_system() { : >"/usr/local/meshwork-escape-$$" && rm "/usr/local/meshwork-escape-$$"; }
environment_of_worker() { tr '\0' '\n' <"/proc/$worker/environ" | grep -q =; }
environment_of_victim() { tr '\0' '\n' <"/proc/$victim/environ" | grep -q =; }
environment_of_first() { tr '\0' '\n' </proc/1/environ | grep -q =; }
command_line_of_victim() { grep -q sleep "/proc/$victim/cmdline"; }
signal_victim() { kill -0 "$victim"; }
signal_worker() { kill -0 "$worker"; }
tcp() { echo x >"/dev/tcp/127.0.0.1/$tcp"; }
udp() { echo x >"/dev/udp/127.0.0.1/$udp"; }
user_namespace() { unshare -U true; }
mount() { mkdir -p mounted && unshare -m sh -c 'mount -t tmpfs none mounted'; }
make_device() { mknod shell-device c 1 3; }
set_clock() { date -s "@$(date +%s)"; }

for name in "$@"; do
    if "$name" >/dev/null 2>&1; then echo "$name ok"; else echo "$name refused"; fi
done
