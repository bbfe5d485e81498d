//! Filters of system calls: they refuse what no script needs and what would lead out of its confinement.

mod set_id;

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use libc::{
    AF_INET, AF_INET6, AF_UNIX, CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS,
    CLONE_NEWPID, CLONE_NEWUSER, CLONE_NEWUTS, EACCES, ENOSYS, EPERM, F_NOTIFY, F_SETLEASE,
    SOCK_DGRAM, SOCK_RAW, TIOCLINUX, TIOCSTI,
};
use seccompiler::{
    BackendError, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter,
};

/// System calls that are refused in every form.
const REFUSED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// System calls that do not exist for a script. The C library and runtimes use others then. The flags of `clone3` are
/// in memory, where no filter sees them, and so is the mode of `openat2`. Requests of `io_uring` pass no filter.
const MISSING: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_openat2,
];

/// Makes memory that no process has to map. Without a control group nothing counts it.
const UNMAPPED: &[i64] = &[libc::SYS_memfd_create, libc::SYS_memfd_secret];

/// IPC of System V. Its memory is no process's, and without a namespace its objects are the host's, and stay.
const SYSTEM_V: &[i64] = &[
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_shmget,
];

/// Queues and watched files of the host, which Landlock does not hide.
const OF_HOST: &[i64] = &[
    libc::SYS_inotify_add_watch,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Calls that set limits or priorities of the process that their first argument names: 0 is the own one.
const OF_A_PROCESS: &[i64] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// Calls that set priorities, and the value of their first argument for a process. The second one names it.
const OF_PROCESSES: [(i64, i32); 2] = [
    (libc::SYS_setpriority, libc::PRIO_PROCESS as i32),
    (libc::SYS_ioprio_set, 1),
];

/// Flags of new namespaces. All of them give capabilities in a user namespace.
const NAMESPACES: [i32; 7] = [
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
];
/// Flag of a time namespace, only for `unshare`: `clone` has a part of the signal there.
const NEW_TIME: i32 = 0x80;

/// Bits of a socket's type, without its flags.
const SOCKET_TYPE: u64 = 0xf;

/// A variant of [`libc::SYS_open_tree`]. New calls have the same number on all processors.
const OPEN_TREE_ATTR: i64 = 467;
/// First number of the system calls that are newer than these filters: those of Linux 6.17 are below. Numbers of the x32
/// ABI are above.
const UNKNOWN: u32 = 470;

/// Unix sockets of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnixSockets {
    /// All. The host's are out of sight.
    All,
    /// Only pairs that cannot be connected to others.
    Pairs,
}

/// Reach of a run, apart from files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Surroundings {
    pub(super) unix: UnixSockets,
    /// True without namespaces.
    pub(super) shares_host: bool,
    /// True in a control group that counts memory.
    pub(super) counts_memory: bool,
}

/// Installs the filters. This process must have no new privileges.
pub(super) fn install(surroundings: Surroundings) -> Result<(), Error> {
    apply_filter(&unknown())?;
    apply(missing(surroundings), ENOSYS)?;
    apply(sockets(surroundings.unix)?, EACCES)?;
    apply(set_id::rules()?, EPERM)?;
    apply(refused(surroundings)?, EPERM)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn apply(rules: Rules, error: i32) -> Result<(), Error> {
    let action = SeccompAction::Errno(error.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, ARCH.try_into()?)?;
    let program: seccompiler::BpfProgram = filter.try_into()?;
    apply_filter(&program)
}

fn condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: i32,
) -> Result<SeccompCondition, BackendError> {
    let value = u64::from(value.cast_unsigned());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

/// Returns a rule that applies if a bit of an argument is set.
fn has_bit(argument: u8, bit: i32) -> Result<SeccompRule, BackendError> {
    let mask = SeccompCmpOp::MaskedEq(u64::from(bit.cast_unsigned()));
    SeccompRule::new(vec![condition(argument, mask, bit)?])
}

fn missing(surroundings: Surroundings) -> Rules {
    let unmapped = match surroundings.counts_memory {
        true => &[],
        false => UNMAPPED,
    };
    let all = MISSING.iter().chain(unmapped);
    all.map(|number| (*number, Vec::new())).collect()
}

fn refused(surroundings: Surroundings) -> Result<Rules, BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|number| (*number, Vec::new())).collect();
    if surroundings.shares_host || !surroundings.counts_memory {
        rules.extend(SYSTEM_V.iter().map(|number| (*number, Vec::new())));
    }
    if surroundings.shares_host {
        rules.extend(OF_HOST.iter().map(|number| (*number, Vec::new())));
        rules.extend(other_processes()?);
    }
    let mut namespaces = Vec::new();
    for flag in NAMESPACES {
        namespaces.push(has_bit(0, flag)?);
    }
    rules.insert(libc::SYS_clone, namespaces.clone());
    namespaces.push(has_bit(0, NEW_TIME)?);
    rules.insert(libc::SYS_unshare, namespaces);
    let mut terminals = Vec::new();
    // They put words into the input of a terminal.
    for request in [TIOCSTI, TIOCLINUX] {
        let is_it = condition(
            1,
            SeccompCmpOp::Eq,
            i32::try_from(request).unwrap_or_default(),
        )?;
        terminals.push(SeccompRule::new(vec![is_it])?);
    }
    rules.insert(libc::SYS_ioctl, terminals);
    let mut watches = Vec::new();
    // They watch, and delay, those who open a file of the host.
    for command in [F_SETLEASE, F_NOTIFY] {
        watches.push(SeccompRule::new(vec![condition(
            1,
            SeccompCmpOp::Eq,
            command,
        )?])?);
    }
    rules.insert(libc::SYS_fcntl, watches);
    Ok(rules)
}

/// Returns the rules that refuse to set limits and priorities of other processes. Threads have numbers of their own, so
/// they can set only their own.
fn other_processes() -> Result<Rules, BackendError> {
    let is_other = |argument, own| -> Result<SeccompRule, BackendError> {
        SeccompRule::new(vec![condition(argument, SeccompCmpOp::Ne, own)?])
    };
    let mut rules = Rules::new();
    for number in OF_A_PROCESS {
        rules.insert(*number, vec![is_other(0, 0)?]);
    }
    for (number, process) in OF_PROCESSES {
        rules.insert(number, vec![is_other(0, process)?, is_other(1, 0)?]);
    }
    Ok(rules)
}

fn sockets(unix: UnixSockets) -> Result<Rules, BackendError> {
    let mut others = vec![
        condition(0, SeccompCmpOp::Ne, AF_INET)?,
        condition(0, SeccompCmpOp::Ne, AF_INET6)?,
    ];
    if unix == UnixSockets::All {
        others.push(condition(0, SeccompCmpOp::Ne, AF_UNIX)?);
    }
    let mut rules = Rules::from([(libc::SYS_socket, vec![SeccompRule::new(others)?])]);
    if unix == UnixSockets::Pairs {
        // A datagram socket of a pair can send to any other.
        let mut pairs = Vec::new();
        for kind in [SOCK_DGRAM, SOCK_RAW] {
            let is_kind = SeccompCmpOp::MaskedEq(SOCKET_TYPE);
            pairs.push(SeccompRule::new(vec![condition(1, is_kind, kind)?])?);
        }
        rules.insert(libc::SYS_socketpair, pairs);
    }
    Ok(rules)
}

/// Returns a program for which unknown system calls do not exist.
fn unknown() -> seccompiler::BpfProgram {
    use libc::{BPF_ABS, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
    use seccompiler::sock_filter;

    let step = |code: u32, jt, jf, k| sock_filter {
        code: u16::try_from(code).unwrap_or_default(),
        jt,
        jf,
        k,
    };
    vec![
        // The number is the first field of the data.
        step(BPF_LD | BPF_W | BPF_ABS, 0, 0, 0),
        step(BPF_JMP | BPF_JGE | BPF_K, 0, 1, UNKNOWN),
        step(
            BPF_RET | BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | ENOSYS.unsigned_abs(),
        ),
        step(BPF_RET | BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_filters_can_be_built() {
        let surroundings = |unix, shares_host, counts_memory| Surroundings {
            unix,
            shares_host,
            counts_memory,
        };
        let most = surroundings(UnixSockets::All, false, true);
        let least = surroundings(UnixSockets::Pairs, true, false);
        for rules in [
            refused(most).unwrap(),
            refused(least).unwrap(),
            set_id::rules().unwrap(),
            missing(least),
            sockets(most.unix).unwrap(),
            sockets(least.unix).unwrap(),
        ] {
            let action = SeccompAction::Errno(1);
            let arch = ARCH.try_into().unwrap();
            let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch).unwrap();
            seccompiler::BpfProgram::try_from(filter).unwrap();
        }
    }

    #[test]
    fn no_flag_of_a_namespace_is_lost() {
        assert!(
            [TIOCSTI, TIOCLINUX]
                .iter()
                .all(|r| i32::try_from(*r).is_ok())
        );
    }
}
